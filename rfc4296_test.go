package iwarp_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// The architecture of RFC 4296, where no test of a protocol shows it already.

// A fileBuffer is a file as registered octets.
type fileBuffer struct {
	*os.File
	size int64
}

func (f fileBuffer) Size() int64 { return f.size }

// patternAt returns the octet at off in all buffers of these tests.
func patternAt(off int64) byte { return byte(off>>8) ^ byte(off*7) }

func pattern(off int64, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = patternAt(off + int64(i))
	}
	return b
}

// A generator stores no octets: it makes them when they are read, and refuses writes of others.
type generator struct{ size int64 }

func (g generator) Size() int64 { return g.size }

func (g generator) ReadAt(p []byte, off int64) (int, error) {
	return copy(p, pattern(off, len(p))), nil
}

func (g generator) WriteAt(p []byte, off int64) (int, error) {
	if !bytes.Equal(p, pattern(off, len(p))) {
		return 0, errors.New("not the pattern")
	}
	return len(p), nil
}

// A sink is a buffer that cannot be read.
type sink struct {
	*testing.T
	generator
}

func (s sink) ReadAt([]byte, int64) (int, error) {
	s.Error("no operation reads it")
	return 0, errors.ErrUnsupported
}

// A mutexed is memory that is used under a mutex, and only through Acquire.
type mutexed struct {
	testing.TB
	mu  sync.Mutex
	mem []byte
}

func (l *mutexed) Size() int64 { return int64(len(l.mem)) }

func (l *mutexed) ReadAt([]byte, int64) (int, error) {
	l.Error("they are acquired")
	return 0, errors.ErrUnsupported
}

func (l *mutexed) WriteAt([]byte, int64) (int, error) {
	l.Error("they are acquired")
	return 0, errors.ErrUnsupported
}

func (l *mutexed) Acquire(off int64, n int, _ bool) ([]byte, error) {
	l.mu.Lock()
	return l.mem[off:][:n], nil
}

func (l *mutexed) Release(int64, int, bool) { l.mu.Unlock() }

func TestARCH_1_2_BuffersOfAnyKindAreServedAlike(t *testing.T) {
	const size = 100_000
	all := stag.LocalWrite | stag.RemoteWrite | stag.RemoteRead
	for name, register := range map[string]func(s *side) (*iwarp.MR, error){
		"memory": func(s *side) (*iwarp.MR, error) { return s.pd.RegisterMR(make([]byte, size), all, nil) },
		"a file": func(s *side) (*iwarp.MR, error) {
			f, err := os.Create(filepath.Join(s.TempDir(), "registered"))
			require.NoError(s, err)
			s.Cleanup(func() { _ = f.Close() })
			return s.pd.RegisterBuffer(fileBuffer{f, size}, all, nil)
		},
		"a generator": func(s *side) (*iwarp.MR, error) { return s.pd.RegisterBuffer(generator{size}, all, nil) },
		"memory behind a lock": func(s *side) (*iwarp.MR, error) {
			return s.pd.RegisterBuffer(&mutexed{TB: s, mem: make([]byte, size)}, all, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := connect(t, pairConfig{network: "pipe"})
			ctx := testContext(t)
			mr, err := register(server)
			require.NoError(t, err)
			src, srcMR := client.register(size, stag.LocalWrite, nil)
			copy(src, pattern(0, size))
			dst, dstMR := client.register(size, stag.LocalWrite, nil)
			for _, r := range [][2]int{{0, 1}, {1, 1}, {size - 1, 1}, {3, 70_000}, {0, size}} {
				off, n := r[0], r[1]
				clear(dst)
				require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(off, n), srcMR.Slice(off, n)))
				require.NoError(t, client.qp.RDMARead(ctx, dstMR.Slice(off, n), mr.Advertise(off, n)))
				require.True(t, bytes.Equal(src[off:off+n], dst[off:off+n]), "octets %d+%d are there", off, n)
			}
			received := make(chan error, 1)
			go func() {
				_, err := server.qp.Recv(ctx, mr.Slice(5, 2000))
				received <- err
			}()
			require.NoError(t, client.qp.Send(ctx, srcMR.Slice(5, 2000)))
			require.NoError(t, <-received, "it takes a message")
			go func() { received <- server.qp.Send(ctx, mr.Slice(7, 2000)) }()
			clear(dst)
			_, err = client.qp.Recv(ctx, dstMR.Slice(7, 2000))
			require.NoError(t, err)
			require.NoError(t, <-received)
			require.True(t, bytes.Equal(src[7:2007], dst[7:2007]), "and gives one")

			past := mr.Advertise(0, size)
			past.Len++
			_, one := client.register(size+1, stag.LocalWrite, nil)
			require.ErrorIs(t, client.qp.RDMARead(ctx, one.Slice(0, size+1), past), iwarp.ErrBounds, "one past the last octet")
		})
	}
}

func TestARCH_3_BufferThatCannotBeReadTakesWrites(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{}, nil)
		mr, err := k.pd.RegisterBuffer(sink{t, generator{1000}}, stag.LocalWrite|stag.RemoteWrite, nil)
		require.NoError(t, err)
		k.p.Send(wiretest.Write(mr.STag(), 10, string(pattern(10, 500))))
		synctest.Wait()
		require.Equal(t, iwarp.StateRTS, k.qp.State(), "a Write is placed")
		k.p.Send(wiretest.ReadRequest(1, 1, 0, 8, mr.STag(), 0))
		k.wantTerminate("and a Read is refused before the buffer is asked", 0x0102)
	})
}

// TestARCH_38_STagMeansTheSameByEveryAddress: an STag belongs to the RNIC and its PD, and not to the address that a peer
// has connected to.
func TestARCH_38_STagMeansTheSameByEveryAddress(t *testing.T) {
	server := newSide(t, nil)
	mem, mr := server.register(16, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
	at := mr.Advertise(0, 16)
	for i, network := range []string{"tcp", "pipe"} { // 127.0.0.1, and a name
		client := newSide(t, nil)
		client.connect(server, pairConfig{network: network})
		src, srcMR := client.register(16, stag.LocalWrite, nil)
		src[i] = byte(i + 1)
		require.NoError(t, client.qp.RDMAWrite(testContext(t), iwarp.RemoteBuffer{at.STag, at.TO + uint64(i), 1}, srcMR.Slice(i, 1)))
		require.NoError(t, client.qp.RDMARead(testContext(t), srcMR.Slice(0, 16), at))
		require.Equal(t, byte(i+1), src[i])
	}
	require.Equal(t, []byte{1, 2, 0}, mem[:3])
}

func TestARCH_26_MaxSizesCanBeAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTalk(t, iwarp.QPConfig{MPA: iwarp.MPAOptions{MaxULPDU: 200}, SendDepth: 4, Setup: func(_ context.Context, qp *iwarp.QP) error {
			require.Equal(t, iwarp.MaxSizes{Message: math.MaxUint32, Inline: 30}, qp.MaxSizes(), "not connected yet")
			return nil
		}}, &iwarp.Config{Limits: iwarp.Limits{MaxInline: 30}})
		m := k.qp.MaxSizes()
		require.Equal(t, iwarp.MaxSizes{Message: math.MaxUint32, Inline: 30, SendSegment: 200 - 18, TaggedSegment: 200 - 14}, m)
		k.posts(iwarp.SendWR{Op: iwarp.OpSend, Local: k.at(0, m.SendSegment)}, iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: k.at(0, m.TaggedSegment), Remote: remote})
		require.Len(t, k.p.Segment(), 200, "one segment")
		require.Len(t, k.p.Segment(), 200, "one segment")
		huge, err := k.pd.RegisterBuffer(vast{}, 0, nil)
		require.NoError(t, err)
		half := huge.Slice(0, math.MaxInt32)
		require.ErrorIs(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{half, half, huge.Slice(0, 2)}}), iwarp.ErrLimit)
		require.ErrorIs(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: make([]byte, m.Inline+1)}), iwarp.ErrLimit)
		require.NoError(t, k.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend, Inline: make([]byte, m.Inline)}))
		require.NoError(t, k.qp.Abort())
		require.Equal(t, m.Message, k.qp.MaxSizes().Message, "it can be asked after the end too")
	})
}
