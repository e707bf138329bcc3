package matrix

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// unknownCases request operations of RFC 7306, none of which siw supports. Each ends the
// connection with a reason, and has no other effect on either side.
func unknownCases() []Case {
	asks := func(name string, wr iwarp.SendWR) []Case {
		return both(Case{Name: "unknown/" + name, Core: true, Run: func(t *T) { t.siwDoesNotKnow(wr) }})
	}
	return slices.Concat(
		asks("immediate", iwarp.SendWR{Op: iwarp.OpImmediate}),
		asks("write-immediate", iwarp.SendWR{Op: iwarp.OpRDMAWriteImm}),
		asks("fetch-add", iwarp.SendWR{Op: iwarp.OpFetchAdd, Add: 1}),
		asks("compare-swap", iwarp.SendWR{Op: iwarp.OpCompareSwap, Swap: 1}),
	)
}

func (t *T) siwDoesNotKnow(wr iwarp.SendWR) {
	e, p := t.connect(setting{})
	theirs := p.mr(0, 4096, all)
	p.fill(0, 0, 4096, 5)
	p.mr(1, 16, all)
	p.recv(7, 1, 0, 16)
	wr.Remote = at(theirs, 0, 8)
	e.post(wr)
	<-e.qp.Done()
	require.ErrorIs(t, e.qp.Err(), iwarp.ErrUnsupported, "our queue pair ends with the cause that siw tells")
	var terminated *iwarp.TerminateError
	require.ErrorAs(t, e.qp.Err(), &terminated, "which came as a Terminate")
	require.True(t, terminated.Remote, "from siw")
	p.do("disconnected")
	p.check(0, 0, 4096, 5)
	p.do("destroy")

	if t.Role == Initiator {
		t.initiate(e, p, setting{})
	} else {
		t.respondOnce(e, p, setting{})
	}
	require.NoError(t, e.qp.Close(), "the next connection works")
	p.do("disconnected")
	p.do("destroy")
}
