package cm

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// TestCM_58_59_DrainTellsOfAWindow: a QP with a memory window bound to it cannot be closed, and is aborted.
func TestCM_58_59_DrainTellsOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", 0)
		p, client := newTestPool(t, nil)
		mr, err := client.pd.RegisterMR(make([]byte, 8), stag.LocalWrite|stag.MWBind, nil)
		require.NoError(t, err)
		mw, err := client.pd.AllocMW()
		require.NoError(t, err)
		for _, ends := range []func() error{func() error { return p.Drain(t.Context(), h.addr) }, p.Close} {
			l := p.mustGet(t, h)
			require.NoError(t, l.QP().Bind(t.Context(), mw, mr.Slice(0, 8), stag.RemoteRead))
			l.Release(false)
			require.ErrorIs(t, ends(), iwarp.ErrWindowBound)
			require.Error(t, l.QP().Err())
		}
		require.NoError(t, mw.Close())
		require.NoError(t, mr.Close())
	})
}

// A heldBuffer blocks reads until it is released.
type heldBuffer struct{ may chan struct{} }

func (b heldBuffer) Size() int64                            { return 8 }
func (b heldBuffer) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (b heldBuffer) ReadAt(p []byte, _ int64) (int, error)  { <-b.may; return len(p), nil }

// TestCM_58_59_DrainTellsOfAQPThatDoesNotEnd: it is not leased, and still serves an RDMA Read of the peer when the time is over.
func TestCM_58_59_DrainTellsOfAQPThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", 0)
		p, client := newTestPool(t, nil)
		held := heldBuffer{make(chan struct{})}
		source, err := client.pd.RegisterBuffer(held, stag.RemoteRead, nil)
		require.NoError(t, err)
		sink, err := h.pd.RegisterMR(make([]byte, 8), stag.LocalWrite, nil)
		require.NoError(t, err)
		l := p.mustGet(t, h)
		synctest.Wait() // the host has its QP, too
		theirs := h.qps[0]
		require.NoError(t, l.QP().RDMAWrite(t.Context(), iwarp.RemoteBuffer{}), "the host may send")
		require.NoError(t, theirs.PostSend(iwarp.SendWR{Op: iwarp.OpRDMARead, Local: []iwarp.SGE{sink.Slice(0, 8)}, Remote: source.Advertise(0, 8)}))
		synctest.Wait()
		l.Release(false)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		time.AfterFunc(time.Minute, func() { close(held.may) })
		require.ErrorIs(t, p.Drain(ctx, h.addr), context.DeadlineExceeded)
		require.Error(t, l.QP().Err())
		require.NoError(t, source.Close())
		p.mustGet(t, h).Release(false)
		require.NoError(t, p.Drain(t.Context(), h.addr), "it tells of its own alone")
	})
}

// TestPoolOfAnRNICThatIsClosed: it has no more QPs. A Get that waits for the next set-up ends, too.
func TestPoolOfAnRNICThatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", 0)
		h.refuses(true)
		p, client := newTestPool(t, nil)
		errs := make(chan error, 1)
		go func() {
			_, err := p.getWithin(h.addr, time.Hour)
			errs <- err
		}()
		synctest.Wait()
		require.NoError(t, client.rnic.Close())
		_, err := p.getWithin("another:1", time.Hour)
		require.ErrorIs(t, err, net.ErrClosed)
		err = <-errs
		require.ErrorIs(t, err, net.ErrClosed)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
}

// TestCM_57_60_AddressOfNoPeerIsAnErrorAtOnce: even if package net would connect, or returns an error that does not show it.
func TestCM_57_60_AddressOfNoPeerIsAnErrorAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newTestPool(t, nil)
		start := time.Now()
		for _, to := range []Target{
			{Network: "tcp"}, {Network: "pipe"}, {Network: "tcp", Addr: ":"}, {Network: "tcp4", Addr: "127.0.0.1:"}, {Network: "tcp6", Addr: "[::1]:0"},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			_, err := p.Get(ctx, to.Network, to.Addr)
			cancel()
			var wrong *net.AddrError
			require.ErrorAs(t, err, &wrong, "%+v", to)
		}
		require.Zero(t, time.Since(start))
		require.Empty(t, p.Health())
	})
}
