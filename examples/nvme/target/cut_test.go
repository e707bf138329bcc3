package target

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/solicit"
	"github.com/goiwarp/iwarp/transport"
)

// A way is one of the two directions of a connection, as the target sees it.
type way string

const (
	in  way = "from the host"
	out way = "to the host"
)

// A cut ends the connections of a target when so many octets of one direction have passed, over all of the connections.
type cut struct {
	way way

	mu     sync.Mutex
	left   int
	passed int
}

// claim returns how many of n octets pass, and whether the connection ends after them.
func (c *cut) claim(n int) (pass int, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pass = min(n, c.left)
	c.left -= pass
	c.passed += pass
	return pass, c.left == 0
}

// A cutConn is the target's end of a connection.
type cutConn struct {
	net.Conn
	*cut
}

func (c cutConn) Read(p []byte) (n int, err error) {
	if c.way != in {
		return c.Conn.Read(p)
	}
	if _, last := c.claim(0); !last {
		if n, err = c.Conn.Read(p); err != nil {
			return n, err
		}
	}
	n, last := c.claim(n)
	if last {
		_ = c.Close()
	}
	if n == 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (c cutConn) Write(p []byte) (int, error) {
	if c.way != out {
		return c.Conn.Write(p)
	}
	n, last := c.claim(len(p))
	n, err := c.Conn.Write(p[:n])
	if last {
		_ = c.Close()
	}
	if n < len(p) && err == nil {
		err = io.ErrClosedPipe
	}
	return n, err
}

// uncut is more octets than are ever sent.
const uncut = 1 << 30

// pageStride is the distance in octets between the cuts of our host while the target sends: nearly all of these octets
// are pages of Identify.
const pageStride = 7

// small is the LBA size of these tests: a conversation with all its parts then takes few octets.
const small = 512

// cutTarget makes a target with a namespace of small LBAs. Its RNIC has just enough for two connections.
func cutTarget(t *testing.T, cfg *Config) *world {
	var err error
	cfg.RNIC, err = iwarp.Open(&iwarp.Config{Limits: iwarp.Limits{MaxMR: 16, MaxCQ: 3, MaxQP: 3}})
	require.NoError(t, err)
	b, err := backend.NewMemory(backend.MemoryConfig{Size: 1 << 20, BlockSize: small})
	require.NoError(t, err)
	w := newWorld(t, "pipe", cfg, b)
	t.Cleanup(func() {
		require.NoError(t, w.target.Close())
		require.NoError(t, cfg.RNIC.Close())
	})
	return w
}

// TestNVME_83_Cuts: a connection is cut after each octet of a conversation. Nothing of it remains, and other connections
// live on.
func TestNVME_83_Cuts(t *testing.T) {
	limits := Limits{Workers: 1}
	for name, cfg := range map[string]func() Config{
		"plain receives": func() Config { return Config{Limits: limits, InCapsule: small} },
		"an SRQ":         func() Config { return Config{Limits: limits, InCapsule: small, SRQ: 96} },
		"a window": func() Config {
			return Config{Limits: limits, Solicitor: iwarp.NewSolicitor(solicit.Config{Fixed: 1 << 20})}
		},
	} {
		for _, qid := range []uint16{0, 2} {
			for _, way := range []way{in, out} {
				t.Run(fmt.Sprintf("%s, queue %d, octets %s", name, qid, way), func(t *testing.T) {
					t.Parallel()
					virtual(t, func(t *testing.T) { cutEverywhere(t, cfg(), qid, way) })
				})
			}
		}
	}
}

// cutStride is the distance in octets between one cut of a connection and the next: with the race detector each
// conversation takes ten times as long.
var cutStride = map[bool]int{false: 1, true: 29}[raceorder.Enabled]

func cutEverywhere(t *testing.T, cfg Config, qid uint16, way way) {
	w := cutTarget(t, &cfg)
	s := newHost(t, w.addr).connect(1)
	tk := newTalker(s)
	whole := w.conversation(tk, qid, &cut{way: way, left: uncut})
	require.True(t, tk.over, "it is a conversation")
	require.Equal(t, cfg.Solicitor != nil && qid > 0, tk.refused, "with a window nothing is in capsules")
	require.Greater(t, whole, 500)
	before := w.remains(t)
	goroutines := bubbleGoroutines()
	for n := 0; n < whole; n += cutStride {
		require.Equal(t, n, w.conversation(tk, qid, &cut{way: way, left: n}), "octets %s", way)
		require.Equal(t, before, w.remains(t), "cut after %d octets", n)
		s.io[0].ok(capsule.FlushSQE(0, 1))
	}
	synctest.Wait()
	require.Equal(t, goroutines, bubbleGoroutines())
}

// conversation runs one on a connection that is cut, and returns how many octets of the direction passed.
func (w *world) conversation(tk *talker, qid uint16, c *cut) int {
	a, b := transport.Pipe(transport.PipeOptions{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if cr, err := w.target.rnic.Server(context.Background(), cutConn{b, c}, nil); err == nil {
			w.target.Handle(cr)
		}
	}()
	tk.over = tk.talk(qid, a)
	tk.hangUp()
	_ = a.Close()
	<-done
	return c.passed
}

// remains is what a target holds besides its memory.
type remains struct {
	queues, running int
	memory, granted int64
	waiting, free   int // for the window; of the SRQ
}

func (w *world) remains(t *testing.T) (r remains) {
	synctest.Wait()
	s := w.target.Stats()
	r.queues, r.running, r.memory = s.Queues, s.Running, s.Memory
	if window := w.target.cfg.Solicitor; window != nil {
		s := window.Stats()
		r.granted, r.waiting = s.Granted, s.Queued
	}
	if shared := w.target.shared; shared != nil {
		r.free = shared.srq.Stats().Free
	}
	return r
}

// bubbleGoroutines counts the goroutines of this bubble.
func bubbleGoroutines() int {
	b := make([]byte, 1<<20)
	mark := []byte("synctest bubble ")
	own := b[:runtime.Stack(b, false)]
	_, own, _ = bytes.Cut(own[:bytes.IndexByte(own, '\n')], mark)
	mark = append(mark, own...) // with the end of the line
	all := b[:runtime.Stack(b, true)]
	return bytes.Count(all, mark)
}
