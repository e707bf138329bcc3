package target

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	nvme "github.com/goiwarp/iwarp/examples/nvme/host"
	"github.com/goiwarp/iwarp/transport"
)

// A cutListener serves the target on connections that are cut.
type cutListener struct {
	net.Listener
	w  *world
	wg sync.WaitGroup

	mu  sync.Mutex
	cut *cut
}

func (w *world) cutListener() *cutListener {
	l, err := transport.Listen(context.Background(), "pipe", "", transport.Options{})
	require.NoError(w.t, err)
	s := &cutListener{Listener: l, w: w, cut: &cut{left: uncut}}
	s.wg.Go(s.serve)
	return s
}

func (s *cutListener) serve() {
	for {
		c, err := s.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		c = cutConn{c, s.cut}
		s.mu.Unlock()
		s.wg.Go(func() {
			if cr, err := s.w.target.rnic.Server(context.Background(), c, nil); err == nil {
				s.w.target.Handle(cr)
			}
		})
	}
}

// serveOne runs a conversation of the host with the target, of whose octets in one direction so many pass. It returns
// how many did, and the first error.
func (s *cutListener) serveOne(o *nvme.Options, way way, n int) (int, error) {
	c := &cut{way: way, left: n}
	s.mu.Lock()
	s.cut = c
	s.mu.Unlock()
	err := useDisk(s.Addr().String(), o)
	synctest.Wait()
	return c.passed, err
}

// useDisk performs one of every operation, and stops at the first error.
func useDisk(addr string, o *nvme.Options) error {
	ctx := context.Background()
	c, err := nvme.Connect(ctx, addr, storage, o)
	if err != nil {
		return err
	}
	synctest.Wait() // for the Asynchronous Event Request, which is sent beside this
	list, err := c.Namespaces(ctx)
	if err == nil {
		n, p := list[0], pattern(4*small, 1)
		for _, step := range []func() error{
			func() error { _, err := n.WriteAt(p[:small], 0); return err },
			func() error { _, err := n.WriteAt(p, small); return err },
			func() error { _, err := n.ReadAt(p, 0); return err },
			func() error { return n.Flush(ctx) },
		} {
			if err = step(); err != nil {
				break
			}
		}
	}
	return errors.Join(err, c.Close())
}

// TestNVME_83_CutsOfOurHost: the connections of this project's host are cut together, after each octet of everything it
// does. Neither end keeps anything.
func TestNVME_83_CutsOfOurHost(t *testing.T) {
	for way, stride := range map[way]int{in: cutStride, out: cutStride * pageStride} {
		t.Run("octets "+string(way), func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T) { cutHostEverywhere(t, way, stride) })
		})
	}
}

func cutHostEverywhere(t *testing.T, way way, stride int) {
	cfg := Config{InCapsule: small, Limits: Limits{Workers: 1}}
	w := cutTarget(t, &cfg)
	s := newHost(t, w.addr).connect(0)
	l := w.cutListener()
	// The RNIC allows one PD, so that nothing of an association may remain when the next one begins.
	rnic, err := iwarp.Open(&iwarp.Config{Limits: iwarp.Limits{MaxPD: 1, MaxQP: 2, MaxCQ: 2}})
	require.NoError(t, err)
	o := &nvme.Options{Network: "pipe", RNIC: rnic, HostNQN: hostNQN, HostID: hostID, QueueSize: 4, KATO: -1, Retries: -1, CtrlLoss: -1}
	whole, err := l.serveOne(o, way, uncut)
	require.NoError(t, err)
	before, goroutines := w.remains(t), bubbleGoroutines()
	for n := 0; n < whole; n += stride {
		passed, _ := l.serveOne(o, way, n)
		require.Equal(t, n, passed, "octets %s", way)
		require.Equal(t, before, w.remains(t), "cut after %d octets", n)
		s.admin.ok(capsule.KeepAliveSQE(0))
	}
	synctest.Wait()
	require.Equal(t, goroutines, bubbleGoroutines())
	pd, err := rnic.AllocPD()
	require.NoError(t, err, "something is left over")
	require.NoError(t, pd.Close())
	require.NoError(t, rnic.Close())
	require.NoError(t, l.Close())
	l.wg.Wait()
}
