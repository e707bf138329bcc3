package iwarp_test

import (
	"bytes"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// Tests named hostile: the peer breaks one rule, and the QP must answer with the
// right Terminate, tell its own application, touch no octet that it should not, and
// leave the other QPs of its RNIC alone.

// Offsets in the memory of a victim. Canaries lie between the parts.
const (
	canary    = 0xc5
	guardLen  = 64
	regionLen = 64
	regionTO  = 0x1000 // TO of the region's first octet
	recvLen   = 8
	sinkLen   = 16

	regionAt = guardLen
	recvAt   = regionAt + regionLen + guardLen
	sinkAt   = recvAt + recvLen + guardLen
	arenaLen = sinkAt + sinkLen + guardLen
)

// Work that a victim has posted when it is attacked.
const (
	recvID = 1 // a receive of recvLen octets
	readID = 2 // an RDMA Read of sinkLen octets
)

// A victim is an RNIC with two QPs: one whose peer the test plays, and one whose
// peer, the friend, behaves.
type victim struct {
	*side
	p        *wiretest.Peer
	cq       *iwarp.CQ
	arena    []byte    // the region, the receive and the sink, with canaries around
	want     []byte    // what arena should hold
	mr       *iwarp.MR // the region, open to the peer
	recv     *iwarp.MR
	sink     *iwarp.MR
	friend   *side
	other    *iwarp.QP // the friend's
	shared   []byte
	sharedMR *iwarp.MR // open to the friend, and to the peer
}

// newVictim makes a victim whose QP, the responder, has had a first segment of its
// peer, so that it may send (RFC 5044 section 7.1.2 rule 4).
func newVictim(t *testing.T, qc iwarp.QPConfig) *victim {
	v := newLonelyVictim(t)
	qc.PD, qc.SendCQ, qc.RecvCQ = v.pd, v.cq, v.cq
	v.p, v.qp = initiator(t, v.rnic, "pipe", &qc)
	v.p.Send(wiretest.Write(0, 0, ""))
	return v
}

// newLonelyVictim makes a victim without the attacked QP.
func newLonelyVictim(t *testing.T) *victim {
	v := &victim{side: newSide(t, nil), friend: newSide(t, nil)}
	v.friend.connect(v.side, pairConfig{network: "pipe"})
	v.other = v.qp
	v.shared, v.sharedMR = v.register(recvLen, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)

	v.arena = bytes.Repeat([]byte{canary}, arenaLen)
	v.want = bytes.Clone(v.arena)
	v.mr = v.part(v.pd, regionAt, regionLen, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, &iwarp.MROptions{BaseTO: regionTO})
	v.recv = v.part(v.pd, recvAt, recvLen, stag.LocalWrite, nil)
	v.sink = v.part(v.pd, sinkAt, sinkLen, stag.LocalWrite, nil)
	var err error
	v.cq, err = v.rnic.CreateCQ(2 * iwarp.DefaultDepth)
	require.NoError(t, err)
	return v
}

// part registers a part of the arena.
func (v *victim) part(pd *iwarp.PD, at, n int, access stag.Access, opts *iwarp.MROptions) *iwarp.MR {
	v.Helper()
	mr, err := pd.RegisterMR(v.arena[at:at+n], access, opts)
	require.NoError(v, err)
	return mr
}

// another registers the region once more, with other rights.
func (v *victim) another(pd *iwarp.PD, access stag.Access, qp *iwarp.QP) *iwarp.MR {
	v.Helper()
	return v.part(pd, regionAt, regionLen, access, &iwarp.MROptions{BaseTO: regionTO, QP: qp})
}

// works posts a receive and an RDMA Read, whose Request the peer then has.
func (v *victim) works() {
	v.Helper()
	v.posts()
	want := wiretest.ReadRequest(1, v.sink.STag(), 0, sinkLen, 0x0d0e0f00, 7)
	require.Equal(v, want, v.p.Segment(), "the Read Request is as posted")
}

func (v *victim) posts() {
	v.Helper()
	require.NoError(v, v.qp.PostRecv(iwarp.RecvWR{ID: recvID, Local: []iwarp.SGE{v.recv.Slice(0, recvLen)}}))
	require.NoError(v, v.qp.PostSend(iwarp.SendWR{
		ID: readID, Op: iwarp.OpRDMARead, Local: []iwarp.SGE{v.sink.Slice(0, sinkLen)},
		Remote: iwarp.RemoteBuffer{STag: 0x0d0e0f00, TO: 7, Len: sinkLen},
	}))
}

// An attack is one segment that breaks a rule, with its required consequences.
type attack struct {
	name    string
	segment func(v *victim) []byte
	wire    func(ulpdu []byte) []byte // how it is framed; nil: by fpdu
	code    transport.Code
	tells   wiretest.TerminateScope
	is      error        // what the local error matches, besides net.ErrClosed
	recv    iwarp.Status // of the receive, flushed if 0
	read    iwarp.Status // of the RDMA Read, flushed if 0
}

// attacks runs every attack against a victim of its own, in virtual time.
func attacks(t *testing.T, list []attack) {
	for _, a := range list {
		t.Run(a.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVictim(t, iwarp.QPConfig{})
				v.works()
				v.suffers(a)
			})
		})
	}
}

// suffers sends the segment of an attack, a correct one and another bad one after it, and checks all consequences.
func (v *victim) suffers(a attack) {
	v.Helper()
	bad, frame := a.segment(v), a.wire
	if frame == nil {
		frame = wiretest.FPDU
	}
	behind := wiretest.FPDU(wiretest.Send(99, 0, "another error"))
	if wiretest.LLP == nil { // otherwise it may be placed before the error is seen
		behind = append(wiretest.FPDU(wiretest.Write(v.mr.STag(), regionTO, "after the error")), behind...)
	}
	v.p.Write(append(frame(bad), behind...))
	require.Equal(v, wiretest.Terminate(a.code, a.tells, bad), v.p.Segment(), "the Terminate tells of the first error")
	v.p.WantEOF("the Terminate is the last message")
	v.p.Close()
	v.ended(a)
}

// ended checks what an attacked QP leaves behind.
func (v *victim) ended(a attack) {
	v.Helper()
	<-v.qp.Done()
	require.Equal(v, iwarp.StateError, v.qp.State())
	v.wantCause(v.qp.Err(), a)
	v.wantCause(v.qp.PostSend(iwarp.SendWR{Op: iwarp.OpSend}), a)
	v.wantCause(v.qp.PostRecv(iwarp.RecvWR{}), a)

	e := <-v.rnic.Events()
	require.Equal(v, iwarp.EventTerminated, e.Kind, "the application is told")
	require.Same(v, v.qp, e.QP)
	v.wantCause(e.Err, a)

	v.wantCompletions(a)
	require.Equal(v, v.want, v.arena, "nothing was placed, in the region or around it")
	v.othersLive()
}

func (v *victim) wantCause(err error, a attack) {
	v.Helper()
	var te *iwarp.TerminateError
	require.ErrorAs(v, err, &te)
	require.Equal(v, a.code, codeOf(te), "the local error has the code of the Terminate")
	require.False(v, te.Remote, "the error was found here")
	require.ErrorIs(v, err, net.ErrClosed)
	if a.is != nil {
		require.ErrorIs(v, err, a.is)
	}
}

// wantCompletions requires the completions of works, each once.
func (v *victim) wantCompletions(a attack) {
	v.Helper()
	want := map[uint64]iwarp.Status{recvID: iwarp.StatusFlushed, readID: iwarp.StatusFlushed}
	if a.recv != iwarp.StatusSuccess {
		want[recvID] = a.recv
	}
	if a.read != iwarp.StatusSuccess {
		want[readID] = a.read
	}
	var wcs [3]iwarp.WC
	got := map[uint64]iwarp.Status{}
	for _, wc := range wcs[:v.cq.Poll(wcs[:])] {
		got[wc.ID] = wc.Status
		require.ErrorIs(v, wc.Err(), net.ErrClosed)
		require.Zero(v, wc.STag, "nothing was invalidated")
	}
	require.Equal(v, want, got, "what was posted completes, once")
}

// othersLive shows that the other QP of the RNIC goes on.
func (v *victim) othersLive() {
	v.Helper()
	ctx := testContext(v.T)
	src, srcMR := v.friend.register(recvLen, stag.LocalWrite, nil)
	back, backMR := v.friend.register(recvLen, stag.LocalWrite, nil)
	copy(src, "friendly")
	require.NoError(v, v.friend.qp.RDMAWrite(ctx, v.sharedMR.Advertise(0, recvLen), srcMR.Slice(0, recvLen)))
	require.NoError(v, v.friend.qp.RDMARead(ctx, backMR.Slice(0, recvLen), v.sharedMR.Advertise(0, recvLen)))
	require.Equal(v, src, back, "the other QP goes on")
	require.Equal(v, src, v.shared)
	require.Equal(v, iwarp.StateRTS, v.other.State())
}
