package iwarp_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// A trap is a Buffer whose methods run code of the test.
type trap struct {
	size  int64
	write func(p []byte, off int64) (int, error)
	read  func(p []byte, off int64) (int, error)
}

func (b *trap) Size() int64                              { return b.size }
func (b *trap) WriteAt(p []byte, off int64) (int, error) { return b.write(p, off) }
func (b *trap) ReadAt(p []byte, off int64) (int, error)  { return b.read(p, off) }

// holding is a Buffer whose WriteAt returns when release is called.
func holding() (b *trap, release func()) {
	c := make(chan struct{})
	b = &trap{size: 64, write: func(p []byte, _ int64) (int, error) { <-c; return len(p), nil }}
	return b, func() { close(c) }
}

// registerTrap registers b with all rights that a peer can use.
func (k *talk) registerTrap(b *trap) *iwarp.MR {
	k.Helper()
	mr, err := k.pd.RegisterBuffer(b, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
	require.NoError(k, err)
	return mr
}

func (k *talk) strikes(mr *iwarp.MR) {
	k.Helper()
	k.p.Send(wiretest.Write(mr.STag(), 0, "octets"))
	synctest.Wait()
}

// A Buffer that does not return holds up nothing but what it must.
func TestEndsAreBoundedWhileABufferWorks(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(k *talk, mr *iwarp.MR) error
		after time.Duration
	}{
		"QP.Close":     {func(k *talk, _ *iwarp.MR) error { return k.qp.Close() }, 5*time.Second + iwarp.AbortTime},
		"QP.Abort":     {func(k *talk, _ *iwarp.MR) error { return k.qp.Abort() }, iwarp.AbortTime},
		"QP.Terminate": {func(k *talk, _ *iwarp.MR) error { return k.qp.Terminate() }, iwarp.PeerEndTime + iwarp.AbortTime},
		"MR.Close":     {func(_ *talk, mr *iwarp.MR) error { return mr.Close() }, 5 * time.Second},
		"RNIC.Close":   {func(k *talk, _ *iwarp.MR) error { return k.rnic.Close() }, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newTalk(t, iwarp.QPConfig{}, nil)
				b, release := holding()
				mr := k.registerTrap(b)
				k.strikes(mr)
				start := time.Now()
				err := c.end(k, mr)
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
				require.Equal(t, c.after, time.Since(start))
				require.ErrorContains(t, k.pd.Close(), "in use", "the region does not come back before the Buffer returns")

				release()
				synctest.Wait()
				if name != "MR.Close" {
					select {
					case <-k.qp.Done():
					default:
						require.Fail(t, "the QP ends when the Buffer has returned")
					}
				}
				require.NoError(t, mr.Close())
				require.NoError(t, k.rnic.Close(), "and the RNIC")
			})
		})
	}
}

// A told is a Flusher that is told of what the peer has written.
type told struct{ touched func() }

func (told) Flush(context.Context, int64, int64) error { return nil }
func (f told) Touched(int64, int64)                    { f.touched() }

// A toldFailed is a Buffer, and its Flusher, which is told of what could not be written.
type toldFailed struct {
	fullDisk
	failed func()
}

func (toldFailed) Flush(context.Context, int64, int64) error { return nil }
func (f toldFailed) Failed(int64, int64, error)              { f.failed() }

// insides are the methods of the program that a peer's RDMA Write calls. Each registers a region whose method calls act.
var insides = map[string]func(k *talk, act func()) *iwarp.MR{
	"WriteAt": func(k *talk, act func()) *iwarp.MR {
		return k.registerTrap(&trap{size: 64, write: func(p []byte, _ int64) (int, error) { act(); return len(p), nil }})
	},
	"Touched": func(k *talk, act func()) *iwarp.MR {
		_, mr := k.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: told{act}})
		return mr
	},
	"Failed": func(k *talk, act func()) *iwarp.MR {
		b := &toldFailed{failed: act}
		mr, err := k.pd.RegisterBuffer(b, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: b})
		require.NoError(k, err)
		return mr
	},
}

// No call from inside a method of a Buffer or a Flusher waits for that method.
func TestEndsFromInsideABuffer(t *testing.T) {
	for name, end := range map[string]func(k *talk, mr *iwarp.MR) error{
		"QP.Close":      func(k *talk, _ *iwarp.MR) error { return k.qp.Close() },
		"QP.Abort":      func(k *talk, _ *iwarp.MR) error { return k.qp.Abort() },
		"QP.Terminate":  func(k *talk, _ *iwarp.MR) error { return k.qp.Terminate() },
		"RNIC.Close":    func(k *talk, _ *iwarp.MR) error { return k.rnic.Close() },
		"RNIC.Shutdown": func(k *talk, _ *iwarp.MR) error { return k.rnic.Shutdown(context.Background()) },
		"MR.Close":      func(_ *talk, mr *iwarp.MR) error { return mr.Close() },
		"MR.Invalidate": func(k *talk, mr *iwarp.MR) error { return mr.Invalidate(testContext(k.T)) },
	} {
		for method, inside := range insides {
			t.Run(name+" in "+method, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					k := newTalk(t, iwarp.QPConfig{}, nil)
					var mr *iwarp.MR
					var err error
					var took time.Duration
					mr = inside(k, func() {
						start := time.Now()
						err = end(k, mr)
						took = time.Since(start)
					})
					k.strikes(mr)
					require.ErrorIs(t, err, iwarp.ErrInBuffer)
					require.Zero(t, took)
					if name == "MR.Close" || name == "MR.Invalidate" {
						require.Equal(t, iwarp.StateRTS, k.qp.State())
						require.NoError(t, mr.Close(), "outside it is possible")
						return
					}
					_ = k.p.Conn.Close()
					<-k.qp.Done() // the end goes on by itself
				})
			})
		}
	}
}

// A Buffer's method may do what need not wait for that method.
func TestCloseOfAnotherRegionFromInsideABuffer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		_, other := k.register(8, stag.LocalWrite, nil)
		err := errors.New("not called")
		mr := k.registerTrap(&trap{size: 64, write: func(p []byte, _ int64) (int, error) { err = other.Close(); return len(p), nil }})
		k.strikes(mr)
		require.NoError(t, err)
		require.NoError(t, k.qp.Abort())
	})
}

// A Buffer that panics ends its QP, and neither the process nor another QP.
func TestBufferThatPanicsEndsItsQP(t *testing.T) {
	cause := errors.New("index out of range")
	for name, c := range map[string]struct {
		strike func(k *talk, mr *iwarp.MR)
		code   uint16
	}{
		"RDMA Write": {func(k *talk, mr *iwarp.MR) { k.p.Send(wiretest.Write(mr.STag(), 0, "octets")) }, 0x1000},
		"RDMA Read":  {func(k *talk, mr *iwarp.MR) { k.p.Send(wiretest.ReadRequest(1, 0x0d0e0f00, 0, 8, mr.STag(), 0)) }, 0x0207},
		"receive": {func(k *talk, mr *iwarp.MR) {
			require.NoError(k, k.qp.PostRecv(iwarp.RecvWR{Local: []iwarp.SGE{mr.Slice(0, 8)}}))
			k.p.Send(wiretest.Send(1, 0, "octets"))
		}, 0x1000},
		"Send": {func(k *talk, mr *iwarp.MR) {
			k.posts(iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{mr.Slice(0, 8)}})
		}, 0x0000},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var log bytes.Buffer
				k := newTalk(t, iwarp.QPConfig{}, &iwarp.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				other := newTalk(t, iwarp.QPConfig{}, nil)
				mr := k.registerTrap(&trap{
					size:  64,
					write: func([]byte, int64) (int, error) { panic(cause) },
					read:  func([]byte, int64) (int, error) { panic(cause) },
				})
				c.strike(k, mr)
				k.wantTerminate("a local catastrophe", c.code)
				err := k.qp.Err()
				var p *stag.PanicError
				require.ErrorAs(t, err, &p)
				require.ErrorIs(t, err, cause)
				require.ErrorIs(t, err, net.ErrClosed)
				require.ErrorContains(t, err, "At panicked: index out of range")
				require.Contains(t, string(p.Stack), "buffer_hold_test.go", "it tells where")
				require.Contains(t, log.String(), "buffer_hold_test.go", "and so does the log")
				require.NoError(t, mr.Close())
				require.Equal(t, iwarp.StateRTS, other.qp.State())
				require.NoError(t, other.qp.Abort())
			})
		})
	}
}
