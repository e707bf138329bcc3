package iwarp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const emptyWrite = "c1 40 00000000 0000000000000000"

func TestInitiatorKnocksAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		done := make(chan struct{})
		require.NoError(t, s.dialTo(QPConfig{}, func(p *peer) {
			defer close(done)
			p.wantRequest(defaultRequest)
			p.replies("50 02 0004 8010 8010")
			p.wantSegment("the RTR", emptyWrite)
			p.wantIdle("the peer has some time", knockAfter-time.Millisecond)
			p.wantSegment("then comes another empty Write", emptyWrite)
			p.wantIdle("but no third", time.Minute)
		}))
		<-done
		require.Zero(t, s.qp.SendCQ().Poll(make([]WC, 1)), "neither makes a completion")
	})
}

func TestInitiatorDoesNotKnockIfItWasHeard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		done := make(chan struct{})
		require.NoError(t, s.dialTo(QPConfig{}, func(p *peer) {
			defer close(done)
			p.wantRequest(defaultRequest)
			p.replies("50 02 0004 8010 8010")
			p.wantSegment("the RTR", emptyWrite)
			p.sends("an empty Write", emptyWrite)
			p.wantIdle("nothing follows an answer", time.Minute)
		}))
		<-done
	})
}
