package cm

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// connected sets up n connections.
func (e *end) connected(h *host, n int) (qps []*iwarp.QP) {
	e.Helper()
	for _, r := range DialMany(context.Background(), pipes(n, h.addr), &Options{RNIC: e.rnic, QP: e.config()}) {
		require.NoError(e, r.Err)
		qps = append(qps, r.QP)
	}
	return qps
}

// closes has the peer end its half of each connection when this side has ended its own.
func (h *host) closes() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, qp := range h.qps {
		go func() { _ = qp.Close() }()
	}
}

// TestCM_53_DisconnectMany ends those that work, and those that have ended, with an error or
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

// TestCM_53_DisconnectManyKeepsItsDeadline: that of the options, and that of the context.
func TestCM_53_DisconnectManyKeepsItsDeadline(t *testing.T) {
	for _, byContext := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			h := listens(t, "pipe", "", 0)
			client := newEnd(t, iwarp.Limits{})
			qps := client.connected(h, 60) // whose peer reads nothing that would end them
			for _, qp := range qps {
				require.NoError(t, client.busy(qp))
			}
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

// busy posts work to a QP that never ends, since the peer has no receive.
func (e *end) busy(qp *iwarp.QP) error {
	return qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}, iwarp.SendWR{Op: iwarp.OpRDMARead})
}

// TestCM_49_53_BreakOfDisconnectMany ends what was pulled, at once, and nothing else.
func TestCM_49_53_BreakOfDisconnectMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listens(t, "pipe", "", 0)
		client := newEnd(t, iwarp.Limits{})
		qps := client.connected(h, 40)
		for _, qp := range qps[1:] {
			require.NoError(t, client.busy(qp))
		}
		require.NoError(t, qps[0].Abort())
		start := time.Now()
		for qp := range DisconnectMany(t.Context(), slices.Values(qps), &DisconnectOptions{InFlight: 10}) {
			<-qp.Done()
			break
		}
		require.Less(t, time.Since(start), time.Second)
		ended := 0
		for _, qp := range qps {
			if qp.State() != iwarp.StateRTS {
				ended++
			}
		}
		require.GreaterOrEqual(t, ended, 10)
		require.LessOrEqual(t, ended, 12)
	})
}
