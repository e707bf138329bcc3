package iwarp_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// bubble runs a test in virtual time. Only in-memory networks work in it.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

const talkMem = 1 << 12

// A talk is a QP whose peer the test plays. The QP is the initiator and so may send
// at once. All its completions go to one CQ.
type talk struct {
	*side
	p   *wiretest.Peer
	cq  *iwarp.CQ
	mem []byte
	mr  *iwarp.MR // all of mem, with every right
}

func newTalk(t *testing.T, qc iwarp.QPConfig, cfg *iwarp.Config) *talk {
	t.Helper()
	k := &talk{side: newSide(t, cfg)}
	k.mem, k.mr = k.register(talkMem, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
	var err error
	k.cq, err = k.rnic.CreateCQ(256)
	require.NoError(t, err)
	qc.PD = k.pd
	if qc.SendCQ == nil {
		qc.SendCQ = k.cq
	}
	if qc.RecvCQ == nil {
		qc.RecvCQ = k.cq
	}
	k.p, k.qp = responder(t, k.rnic, "pipe", &qc)
	return k
}

// speaks sends a message without effect from the peer. The peer then cannot be a siw that has lost a wake-up, and gets
// no empty Writes.
func (k *talk) speaks() { k.p.SendHex("a message without effect", emptyWrite) }

// at returns the SGE of n octets at off.
func (k *talk) at(off, n int) []iwarp.SGE { return []iwarp.SGE{k.mr.Slice(off, n)} }

// posts queues work that must be accepted.
func (k *talk) posts(wrs ...iwarp.SendWR) {
	k.Helper()
	require.NoError(k, k.qp.PostSend(wrs...))
}

// completes waits for n completions.
func (s *side) completes(cq *iwarp.CQ, n int) []iwarp.WC {
	s.Helper()
	ctx := testContext(s.T)
	wcs := make([]iwarp.WC, n)
	for got := 0; got < n; {
		m, err := cq.Wait(ctx, wcs[got:])
		require.NoError(s, err, "%d completions, after %d of them", n, got)
		got += m
	}
	return wcs
}

// wantCompletions waits for as many completions as ids, and compares their order.
func (k *talk) wantCompletions(expectation string, ids ...uint64) {
	k.Helper()
	for i, wc := range k.completes(k.cq, len(ids)) {
		require.Equal(k, ids[i], wc.ID, expectation)
		require.Equal(k, iwarp.StatusSuccess, wc.Status, expectation)
	}
}

// wantNoCompletion requires that nothing completes by itself.
func (k *talk) wantNoCompletion(expectation string) {
	k.Helper()
	synctest.Wait()
	require.Zero(k, k.cq.Poll(make([]iwarp.WC, 1)), expectation)
}

// statuses returns the statuses of wcs, in order.
func statuses(wcs []iwarp.WC) (s []iwarp.Status) {
	for _, wc := range wcs {
		s = append(s, wc.Status)
	}
	return s
}

// ids returns the IDs of wcs, in order.
func ids(wcs []iwarp.WC) (s []uint64) {
	for _, wc := range wcs {
		s = append(s, wc.ID)
	}
	return s
}

// remote is memory that a scripted peer pretends to have.
var remote = iwarp.RemoteBuffer{STag: 0x0d0e0f00, TO: 0x100, Len: talkMem}

// answersRead sends the whole response to a Read of this side into its sink.
func (k *talk) answersRead(off int, payload string) {
	k.Helper()
	k.p.Send(wiretest.ReadResponse(0xc1, k.mr.STag(), uint64(off), payload))
}

// wantTerminate reads everything up to the Terminate, ends the connection, waits for the end of the QP, and compares the
// code.
func (k *talk) wantTerminate(expectation string, code uint16) {
	k.Helper()
	k.p.WantTerminate(expectation, code)
	k.p.WantEOF("nothing follows the Terminate")
	k.p.Close()
	<-k.qp.Done()
}

// doOne posts one work request and waits until it is done.
func doOne(ctx context.Context, qp *iwarp.QP, wr iwarp.SendWR) (iwarp.WC, error) {
	wcs, err := qp.Do(ctx, wr)
	if len(wcs) == 0 {
		return iwarp.WC{}, err
	}
	return wcs[0], err
}

// codeOf combines layer, type and code of a Terminate.
func codeOf(te *iwarp.TerminateError) transport.Code {
	return transport.MakeCode(te.Layer, te.Type, te.Code)
}
