package cm

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// connected sets up n connections.
func (e *end) connected(h *host, n int) (qps []*iwarp.QP) {
	e.Helper()
	qc := e.config()
	qc.MPA.Revision = 1
	for _, r := range DialMany(context.Background(), pipes(n, h.addr), &Options{RNIC: e.rnic, QP: qc}) {
		require.NoError(e, r.Err)
		qps = append(qps, r.QP)
	}
	return qps
}

// closes ends the peer's half of each connection when this side has ended its own.
func (h *host) closes() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, qp := range h.qps {
		go func() { _ = qp.Close() }()
	}
}

// TestCM_53_DisconnectMany ends QPs that work, and QPs that have ended, with an error or
// without.
func TestCM_53_DisconnectMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", 0)
		client := newEnd(t, iwarp.Limits{})
		qps := client.connected(h, 100)
		h.closes()
		for _, qp := range qps[:10] {
			require.NoError(t, qp.Abort())
		}
		got := make(map[*iwarp.QP]bool)
		for qp, err := range DisconnectMany(t.Context(), slices.Values(qps), &DisconnectOptions{InFlight: 16}) {
			require.NoError(t, err)
			<-qp.Done()
			got[qp] = true
		}
		require.Len(t, got, 100)
		client.waitsUntilIdle()
		for qp, err := range DisconnectMany(t.Context(), slices.Values(append(qps, nil)), nil) {
			require.Equal(t, qp == nil, err != nil, "once more does nothing")
		}
	})
}

// TestCM_53_DisconnectManyKeepsItsDeadline: the deadline of the options, and that of the context.
func TestCM_53_DisconnectManyKeepsItsDeadline(t *testing.T) {
	for _, byContext := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			client := newEnd(t, iwarp.Limits{})
			qps := client.connected(mute(t), 60)
			ctx, o := t.Context(), &DisconnectOptions{InFlight: 16, Timeout: 100 * time.Millisecond}
			if byContext {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, errTest)
				defer cancel()
				o.Timeout = -1
			}
			start, n := time.Now(), 0
			for qp, err := range DisconnectMany(ctx, slices.Values(qps), o) {
				require.Equal(t, byContext, errors.Is(err, errTest), "%v", err)
				require.Equal(t, !byContext, errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
				<-qp.Done()
				n++
			}
			require.Equal(t, 60, n)
			require.Equal(t, 100*time.Millisecond, time.Since(start))
			client.waitsUntilIdle()
		})
	}
}

// TestCM_53_DisconnectManyAbortsWhereAWindowIsBound: and its error says so.
func TestCM_53_DisconnectManyAbortsWhereAWindowIsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newEnd(t, iwarp.Limits{})
		qps := client.connected(listens(t, "pipe", "", 0), 1)
		mr, err := client.pd.RegisterMR(make([]byte, 8), stag.LocalWrite|stag.MWBind, nil)
		require.NoError(t, err)
		mw, err := client.pd.AllocMW()
		require.NoError(t, err)
		require.NoError(t, qps[0].PostSend(iwarp.SendWR{Op: iwarp.OpBind, MW: mw, Local: []iwarp.SGE{mr.Slice(0, 8)}, Access: stag.RemoteWrite}))
		synctest.Wait()
		for qp, err := range DisconnectMany(t.Context(), slices.Values(qps), nil) {
			require.ErrorIs(t, err, iwarp.ErrWindowBound)
			require.Error(t, qp.Err(), "it has ended")
			<-qp.Done()
		}
		require.NoError(t, mw.Close())
		require.NoError(t, mr.Close())
		client.waitsUntilIdle()
	})
}

// mute makes a listener on the pipe that answers each Request, and then neither reads nor ends.
func mute(t *testing.T) *host {
	t.Helper()
	l, err := transport.Listen(t.Context(), "pipe", "", transport.Options{})
	require.NoError(t, err)
	h := &host{addr: l.Addr().String()}
	var all sync.WaitGroup
	var conns []net.Conn
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
		for _, c := range conns {
			_ = c.Close()
		}
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
			var request [20]byte
			if _, err := readFull(c, request[:]); err == nil {
				_, _ = c.Write([]byte("MPA ID Rep Frame\x40\x01\x00\x00"))
			}
		}
	})
	return h
}

// TestCM_49_53_BreakOfDisconnectMany: it ends the QPs that were pulled, at once, and no others.
func TestCM_49_53_BreakOfDisconnectMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newEnd(t, iwarp.Limits{})
		qps := client.connected(mute(t), 40)
		require.NoError(t, qps[0].Abort())
		pulled := 0
		targets := func(yield func(*iwarp.QP) bool) {
			for _, qp := range qps {
				pulled++
				if !yield(qp) {
					return
				}
			}
		}
		start := time.Now()
		for qp, err := range DisconnectMany(t.Context(), targets, &DisconnectOptions{InFlight: 10}) {
			require.NoError(t, err, "it had ended before")
			<-qp.Done()
			break
		}
		require.Less(t, time.Since(start), time.Second)
		require.LessOrEqual(t, pulled, 12)
		for i, qp := range qps {
			require.Equal(t, i < pulled, qp.State() != iwarp.StateRTS, "QP %d, %d were pulled", i, pulled)
		}
	})
}
