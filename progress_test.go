package iwarp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// TestReadWithoutProgress: it is reported once each time. A Read whose octets come now and then is not reported.
func TestReadWithoutProgress(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const limit = 30 * time.Second
		k := newTalk(t, iwarp.QPConfig{StallWait: limit}, nil)
		k.speaks()
		for id := range uint64(2) {
			k.posts(k.read(id, 64))
			k.asks("it goes out", uint32(id+1), 64)
			time.Sleep(limit - 1)
			k.wantEvents("not before the time is over")
			time.Sleep(limit / 4)
			e := k.wantEvents("then once", iwarp.EventNoProgress)
			require.Same(t, k.qp, e.QP)
			require.NoError(t, e.Err)
			time.Sleep(time.Hour)
			k.wantEvents("and not again")
			k.answers(64)
			k.wantCompletions("the QP has not ended", id)
		}
		time.Sleep(time.Hour)
		k.wantEvents("nothing is posted")
		require.NoError(t, k.qp.Abort())
	})
}

func TestStallWaitIsNotNegative(t *testing.T) {
	s := newSide(t, nil)
	_, err := s.rnic.Dial(t.Context(), "pipe", "nowhere", &iwarp.QPConfig{PD: s.pd, StallWait: -time.Second})
	require.ErrorContains(t, err, "StallWait")
}
