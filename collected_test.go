package iwarp_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// TestMemoryOfAClosedRegionIsNotKept by a QP that has used it and may live for long: the garbage collector frees it.
func TestMemoryOfAClosedRegionIsNotKept(t *testing.T) {
	const n = 64
	const access = stag.LocalWrite | stag.RemoteRead | stag.RemoteWrite
	client, server := connect(t, pairConfig{})
	_, far := client.register(n, access, nil)
	ctx := testContext(t)
	receives := func(qp *iwarp.QP, into *iwarp.MR) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := qp.Recv(ctx, into.Slice(0, n))
			done <- err
		}()
		return done
	}
	posts := func(into ...iwarp.SGE) {
		for range 3 {
			require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{Local: into}))
		}
	}
	send := iwarp.SendWR{Op: iwarp.OpSend, Local: []iwarp.SGE{far.Slice(0, n)}}
	server.freed("it receives messages", access, nil, func(mr *iwarp.MR) {
		posts(mr.Slice(0, n))
		require.NoError(t, client.qp.PostSend(send, send, send)) // they arrive together
		server.completes(server.qp.RecvCQ(), 3)
	})
	server.freed("a blocking call receives one", access, nil, func(mr *iwarp.MR) {
		done := receives(server.qp, mr)
		require.NoError(t, client.qp.Send(ctx, far.Slice(0, n)))
		require.NoError(t, <-done)
	})
	server.freed("it sends", access, nil, func(mr *iwarp.MR) {
		done := receives(client.qp, far)
		require.NoError(t, server.qp.Send(ctx, mr.Slice(0, n)))
		require.NoError(t, <-done)
	})
	server.freed("it writes, and reads", access, nil, func(mr *iwarp.MR) {
		require.NoError(t, server.qp.RDMAWrite(ctx, far.Advertise(0, n), mr.Slice(0, n)))
		require.NoError(t, server.qp.RDMARead(ctx, mr.Slice(0, n), far.Advertise(0, n)))
	})
	server.freed("the peer reads", access, nil, func(mr *iwarp.MR) {
		require.NoError(t, client.qp.RDMARead(ctx, far.Slice(0, n), mr.Advertise(0, n)))
	})
	server.freed("it is durable on receive", access, &iwarp.MROptions{Durable: new(medium), DurableOnReceive: true}, func(*iwarp.MR) {
		_, into := server.register(n, access, nil)
		done := receives(server.qp, into)
		require.NoError(t, client.qp.Send(ctx, far.Slice(0, n)))
		require.NoError(t, <-done)
	})
	server.freed("it ends", access, nil, func(mr *iwarp.MR) {
		posts(mr.Slice(0, n/2), mr.Slice(n/2, n/2))
		require.NoError(t, server.qp.Abort())
		server.completes(server.qp.RecvCQ(), 3)
	})
	runtime.KeepAlive(server.qp)
}

// freed has use make use of a region, closes it, and expects that nothing keeps its memory.
func (s *side) freed(when string, access stag.Access, opts *iwarp.MROptions, use func(mr *iwarp.MR)) {
	s.Helper()
	gone := make(chan struct{})
	func() {
		memory := new([64 << 10]byte)
		runtime.AddCleanup(memory, func(gone chan struct{}) { close(gone) }, gone)
		mr, err := s.pd.RegisterMR(memory[:], access, opts)
		require.NoError(s, err)
		use(mr)
		require.NoError(s, mr.Close())
	}()
	require.Eventually(s, func() bool {
		runtime.GC()
		select {
		case <-gone:
			return true
		default:
			return false
		}
	}, 10*time.Second, time.Millisecond, when)
}
