package rdma9p_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hugelgupf/p9/fsimpl/templatefs"
	"github.com/hugelgupf/p9/linux"
	"github.com/hugelgupf/p9/p9"
	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/ninep/dirfs"
	"github.com/goiwarp/iwarp/examples/ninep/rdma9p"
	"github.com/goiwarp/iwarp/stag"
)

// patience is how long a test waits for what must happen.
const patience = 45 * time.Second

// A transport is a client's stream over a QP: each message is one Send.
type transport struct {
	qp   *iwarp.QP
	pd   *iwarp.PD
	mr   *iwarp.MR
	mem  []byte
	size int
	in   []byte
	id   int
	out  []byte
}

const transportDepth = 32

// dialTransport connects a client whose receives have msize octets.
func dialTransport(t *testing.T, rnic *iwarp.RNIC, pd *iwarp.PD, l *iwarp.Listener, msize int) *transport {
	t.Helper()
	c := &transport{pd: pd, size: msize, mem: make([]byte, transportDepth*msize), id: -1}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	c.mr, err = pd.RegisterMR(c.mem, stag.LocalWrite, nil)
	require.NoError(t, err)
	c.qp, err = rnic.Dial(ctx, l.Addr().Network(), l.Addr().String(), &iwarp.QPConfig{
		PD: pd, IRD: -1, ORD: -1, RecvDepth: transportDepth, MPA: iwarp.MPAOptions{ClientServer: true},
		Setup: func(_ context.Context, qp *iwarp.QP) error {
			for i := range transportDepth {
				if err := c.post(qp, i); err != nil {
					return err
				}
			}
			return nil
		},
	})
	require.NoError(t, err)
	return c
}

func (c *transport) post(qp *iwarp.QP, i int) error {
	return qp.PostRecv(iwarp.RecvWR{ID: uint64(i), Local: []iwarp.SGE{c.mr.Slice(i*c.size, c.size)}})
}

func (c *transport) Read(p []byte) (int, error) {
	if len(c.in) == 0 {
		if c.id >= 0 {
			_ = c.post(c.qp, c.id) // refused after the end of the peer, whose messages may still be in the CQ
			c.id = -1
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		var wcs [1]iwarp.WC
		if _, err := c.qp.RecvCQ().Wait(ctx, wcs[:]); err != nil {
			return 0, err
		}
		if err := wcs[0].Err(); err != nil {
			return 0, err
		}
		c.id = int(wcs[0].ID)
		c.in = c.mem[c.id*c.size:][:wcs[0].Len]
		if int(binary.LittleEndian.Uint32(c.in)) != len(c.in) {
			return 0, errors.New("a Send is not one message")
		}
		if len(c.in) >= c.size {
			return 0, errors.New("an answer of msize octets")
		}
	}
	n := copy(p, c.in)
	c.in = c.in[n:]
	return n, nil
}

func (c *transport) Write(p []byte) (int, error) {
	c.out = append(c.out, p...)
	if len(c.out) < 4 || len(c.out) < int(binary.LittleEndian.Uint32(c.out)) {
		return len(p), nil
	}
	defer func() { c.out = c.out[:0] }()
	mr, err := c.pd.RegisterMR(c.out, stag.LocalWrite, nil)
	if err != nil {
		return 0, err
	}
	defer mr.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return len(p), c.qp.Send(ctx, mr.Slice(0, len(c.out)))
}

func (c *transport) Close() error { return c.qp.Close() }

// A site is a p9 server behind the adapter.
type site struct {
	t    *testing.T
	rnic *iwarp.RNIC
	pd   *iwarp.PD
	l    *iwarp.Listener
	stop context.CancelFunc
	over chan error
}

func newSite(t *testing.T, network, addr string, a p9.Attacher, cfg rdma9p.Config) *site {
	t.Helper()
	s := &site{t: t, over: make(chan error, 1)}
	var err error
	s.rnic, err = iwarp.Open(nil)
	require.NoError(t, err)
	s.pd, err = s.rnic.AllocPD()
	require.NoError(t, err)
	s.l, err = s.rnic.Listen(t.Context(), network, addr, nil)
	require.NoError(t, err)
	cfg.QP.PD = s.pd
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.over <- rdma9p.Serve(ctx, s.l, rdma9p.DelayEnd(p9.NewServer(a)), &cfg) }()
	t.Cleanup(func() {
		stop()
		if err := <-s.over; !errors.Is(err, context.Canceled) {
			t.Errorf("Serve: %v", err)
		}
		if err := s.rnic.Close(); err != nil {
			t.Errorf("RNIC: %v", err)
		}
	})
	return s
}

// mount attaches a client.
func (s *site) mount(msize int) (*transport, p9.File) {
	s.t.Helper()
	c := dialTransport(s.t, s.rnic, s.pd, s.l, msize)
	client, err := p9.NewClient(c, p9.WithMessageSize(uint32(msize)))
	require.NoError(s.t, err)
	root, err := client.Attach("/")
	require.NoError(s.t, err)
	return c, root
}

func TestP9R_1_7_ServerOfP9(t *testing.T) {
	for _, x := range []struct {
		network, addr string
		srq           int
	}{{"pipe", "files", 0}, {"pipe", "files", 16}, {"tcp", "127.0.0.1:0", 0}} {
		t.Run(fmt.Sprint(x.network, x.srq), func(t *testing.T) {
			dir := t.TempDir()
			s := newSite(t, x.network, x.addr, dirfs.Attacher(dir), rdma9p.Config{MaxMsize: 64 << 10, SRQ: x.srq})
			c, root := s.mount(64 << 10)
			data := make([]byte, 1500001)
			fill(data)
			var all sync.WaitGroup
			for i := range 4 {
				all.Go(func() { copyFile(t, root, fmt.Sprint("file", i), data[i*1000:]) })
			}
			all.Wait()
			for i := range 4 {
				got, err := os.ReadFile(filepath.Join(dir, fmt.Sprint("file", i)))
				require.NoError(t, err)
				require.True(t, bytes.Equal(data[i*1000:], got), "file %d", i)
			}
			for i := range 40 {
				_, err := root.Mkdir(fmt.Sprint("directory", i), 0o755, 0, 0)
				require.NoError(t, err)
			}
			_, d, err := root.Walk(nil)
			require.NoError(t, err)
			_, _, err = d.Open(p9.ReadOnly)
			require.NoError(t, err)
			entries, err := d.Readdir(0, 1<<20)
			require.NoError(t, err)
			require.Len(t, entries, 44)
			require.NoError(t, d.Close())
			require.NoError(t, root.Close())
			require.NoError(t, c.Close())
			stats := c.qp.Stats()
			require.Equal(t, stats.Sent.Send.Messages, stats.Received.Send.Messages)
			require.Equal(t, iwarp.OpStats{Send: stats.Sent.Send}, stats.Sent)
			require.Equal(t, iwarp.OpStats{Send: stats.Received.Send}, stats.Received)
		})
	}
}

func fill(b []byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}

// copyFile writes a file and reads it back.
func copyFile(t *testing.T, root p9.File, name string, data []byte) {
	_, dir, err := root.Walk(nil)
	if err != nil {
		t.Errorf("walk: %v", err)
		return
	}
	f, _, _, err := dir.Create(name, p9.ReadWrite, 0o644, 0, 0)
	if err != nil {
		t.Errorf("create: %v", err)
		return
	}
	defer f.Close()
	if n, err := f.WriteAt(data, 0); n != len(data) || err != nil {
		t.Errorf("write: %d, %v", n, err)
	}
	got := make([]byte, len(data))
	if n, err := f.ReadAt(got, 0); n != len(data) || err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("read: %d, %v", n, err)
	}
	if !bytes.Equal(got, data) {
		t.Errorf("%s differs", name)
	}
}

func TestP9R_14_ReadOnlyServerOfP9(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600))
	s := newSite(t, "pipe", t.Name(), dirfs.Attacher(dir), rdma9p.Config{ReadOnly: true})
	c, root := s.mount(8192)
	_, f, err := root.Walk([]string{"file"})
	require.NoError(t, err)
	_, _, err = f.Open(p9.ReadWrite)
	require.ErrorIs(t, err, linux.EROFS)
	_, _, err = f.Open(p9.ReadOnly)
	require.NoError(t, err)
	got := make([]byte, 4)
	_, err = f.ReadAt(got, 0)
	require.NoError(t, err)
	require.Equal(t, "text", string(got))
	_, err = f.WriteAt(got, 0)
	require.ErrorIs(t, err, linux.EROFS)
	_, err = root.Mkdir("directory", 0o755, 0, 0)
	require.ErrorIs(t, err, linux.EROFS)
	require.ErrorIs(t, root.UnlinkAt("file", 0), linux.EROFS)
	require.ErrorIs(t, f.SetAttr(p9.SetAttrMask{Size: true}, p9.SetAttr{}), linux.EROFS)
	require.NoError(t, c.Close())
	text, err := os.ReadFile(filepath.Join(dir, "file"))
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
}

// A slow is a file whose reads block.
type slow struct {
	templatefs.NoopFile
	p9.DefaultWalkGetAttr
	reads   chan struct{} // gets a token for each read that has begun
	release chan struct{}
}

func (f *slow) Attach() (p9.File, error) { return f, nil }

func (f *slow) Walk([]string) ([]p9.QID, p9.File, error) { return nil, f, nil }

func (f *slow) Open(p9.OpenFlags) (p9.QID, uint32, error) { return p9.QID{}, 0, nil }

func (f *slow) Close() error { return nil }

func (f *slow) GetAttr(p9.AttrMask) (p9.QID, p9.AttrMask, p9.Attr, error) {
	return p9.QID{}, p9.AttrMaskAll, p9.Attr{Mode: p9.ModeRegular}, nil
}

func (f *slow) ReadAt(p []byte, _ int64) (int, error) {
	f.reads <- struct{}{}
	<-f.release
	return copy(p, "late"), nil
}

// TestP9R_8_TflushOfServerOfP9: p9's server sometimes lets the answer to a Tflush overtake the answer to the request.
// The adapter does not.
func TestP9R_8_TflushOfServerOfP9(t *testing.T) {
	f := &slow{reads: make(chan struct{}), release: make(chan struct{})}
	s := newSite(t, "pipe", t.Name(), f, rdma9p.Config{})
	c := dialTransport(t, s.rnic, s.pd, s.l, 8192)
	call := func(typ byte, tag uint16, body ...byte) {
		msg := binary.LittleEndian.AppendUint32(nil, uint32(7+len(body)))
		msg = binary.LittleEndian.AppendUint16(append(msg, typ), tag)
		_, err := c.Write(append(msg, body...))
		require.NoError(t, err)
	}
	want := func(typ byte, tag uint16) {
		t.Helper()
		var head [7]byte
		_, err := io.ReadFull(c, head[:])
		require.NoError(t, err)
		_, err = io.CopyN(io.Discard, c, int64(binary.LittleEndian.Uint32(head[:]))-7)
		require.NoError(t, err)
		require.Equal(t, []any{typ, tag}, []any{head[4], binary.LittleEndian.Uint16(head[5:])})
	}
	call(100, 0xffff, append([]byte{0, 32, 0, 0, 8, 0}, "9P2000.L"...)...)
	want(101, 0xffff)
	call(104, 1, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0)
	want(105, 1)
	call(12, 1, 1, 0, 0, 0, 0, 0, 0, 0)
	want(13, 1)
	for range 200 {
		call(116, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0)
		<-f.reads
		call(108, 6, 5, 0)
		f.release <- struct{}{}
		want(117, 5)
		want(109, 6)
	}
	require.NoError(t, c.Close())
}

// TestP9R_11_StopOfServerOfP9: requests that the server has begun are answered.
func TestP9R_11_StopOfServerOfP9(t *testing.T) {
	f := &slow{reads: make(chan struct{}), release: make(chan struct{})}
	s := newSite(t, "pipe", t.Name(), f, rdma9p.Config{})
	_, root := s.mount(8192)
	_, _, err := root.Open(p9.ReadOnly)
	require.NoError(t, err)
	result := make(chan error, 1)
	go func() {
		b := make([]byte, 4)
		_, err := root.ReadAt(b, 0)
		if err == nil && string(b) != "late" {
			err = errors.New("other octets")
		}
		result <- err
	}()
	<-f.reads
	s.stop()
	f.release <- struct{}{}
	require.NoError(t, <-result)
}
