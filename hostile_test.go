package iwarp

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// Tests named hostile: the peer breaks one rule, and the QP must answer with the
// right Terminate, tell its own application, touch no octet that it should not, and
// leave the other QPs of its RNIC alone.

// Where things are in the memory of a victim. Between them lie canaries.
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

// What a victim has posted when it is attacked.
const (
	recvID = 1 // a receive of recvLen octets
	readID = 2 // an RDMA Read of sinkLen octets
)

// A victim is an RNIC with two QPs: one whose peer the test plays, and one whose
// peer, the friend, behaves.
type victim struct {
	*side
	p        *peer
	cq       *CQ
	arena    []byte // the region, the receive and the sink, with canaries around
	want     []byte // what arena should hold
	mr       *MR    // the region, open to the peer
	recv     *MR
	sink     *MR
	friend   *side
	other    *QP // the friend's
	shared   []byte
	sharedMR *MR // open to the friend, and to the peer
}

// newVictim makes a victim whose QP, the responder, has had a first segment of its
// peer, so that it may send (RFC 5044 section 7.1.2 rule 4).
func newVictim(t *testing.T, qc QPConfig) *victim {
	v := newLonelyVictim(t)
	qc.PD, qc.SendCQ, qc.RecvCQ = v.pd, v.cq, v.cq
	v.p, v.qp = initiator(t, v.rnic, "pipe", &qc)
	v.p.writes(fpdu(write(0, 0, "")))
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
	v.mr = v.part(v.pd, regionAt, regionLen, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, &MROptions{BaseTO: regionTO})
	v.recv = v.part(v.pd, recvAt, recvLen, stag.LocalWrite, nil)
	v.sink = v.part(v.pd, sinkAt, sinkLen, stag.LocalWrite, nil)
	var err error
	v.cq, err = v.rnic.CreateCQ(2 * DefaultDepth)
	require.NoError(t, err)
	return v
}

// part registers a part of the arena.
func (v *victim) part(pd *PD, at, n int, access stag.Access, opts *MROptions) *MR {
	v.Helper()
	mr, err := pd.RegisterMR(v.arena[at:at+n], access, opts)
	require.NoError(v, err)
	return mr
}

// another registers the region once more, with other rights.
func (v *victim) another(pd *PD, access stag.Access, qp *QP) *MR {
	v.Helper()
	return v.part(pd, regionAt, regionLen, access, &MROptions{BaseTO: regionTO, QP: qp})
}

// works posts a receive and an RDMA Read, whose Request the peer then has.
func (v *victim) works() {
	v.Helper()
	v.posts()
	want := readRequest(1, v.sink.STag(), 0, sinkLen, 0x0d0e0f00, 7)
	require.Equal(v, want, v.p.segment(), "the Read Request is as posted")
}

func (v *victim) posts() {
	v.Helper()
	require.NoError(v, v.qp.PostRecv(RecvWR{ID: recvID, Local: []SGE{v.recv.Slice(0, recvLen)}}))
	require.NoError(v, v.qp.PostSend(SendWR{
		ID: readID, Op: OpRDMARead, Local: []SGE{v.sink.Slice(0, sinkLen)},
		Remote: RemoteBuffer{STag: 0x0d0e0f00, TO: 7, Len: sinkLen},
	}))
}

// An attack is one segment that breaks a rule, and what must come of it.
type attack struct {
	name    string
	segment func(v *victim) []byte
	wire    func(ulpdu []byte) []byte // how it is framed, fpdu if nil
	code    transport.Code
	tells   telling
	is      error  // what the local error matches, besides net.ErrClosed
	recv    Status // of the receive, flushed if 0
	read    Status // of the RDMA Read, flushed if 0
}

// A telling is what a Terminate holds of the segment in error (RFC 5040 section 4.8).
type telling uint8

const (
	tellsHeader telling = iota // its length and DDP header
	tellsRead                  // and the header of the Read Request
	tellsNothing
)

// terminate is the segment that answers the segment bad.
func terminate(code transport.Code, tells telling, bad []byte) []byte {
	b := untagged(0x41, 0x47, 0, 2, 1, 0, "")
	b = binary.BigEndian.AppendUint16(b, uint16(code))
	if tells == tellsNothing {
		return append(b, 0, 0)
	}
	b = append(b, 0xc0, 0)
	n := 18
	if bad[0]&0x80 != 0 {
		n = 14
	}
	if tells == tellsRead {
		b[len(b)-2] |= 0x20
		n += 28
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(bad)))
	return append(b, bad[:n]...)
}

// attacks runs every attack against a victim of its own, in virtual time.
func attacks(t *testing.T, list []attack) {
	for _, a := range list {
		t.Run(a.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVictim(t, QPConfig{})
				v.works()
				v.suffers(a)
			})
		})
	}
}

// suffers sends the segment of an attack, a faultless one and another bad one behind it,
// and checks all that must come of it.
func (v *victim) suffers(a attack) {
	v.Helper()
	bad, frame := a.segment(v), a.wire
	if frame == nil {
		frame = fpdu
	}
	behind := fpdu(send(99, 0, "another error"))
	if reordering == 0 { // else it may be placed before the error is seen
		behind = append(fpdu(write(v.mr.STag(), regionTO, "behind the error")), behind...)
	}
	v.p.writes(append(frame(bad), behind...))
	require.Equal(v, terminate(a.code, a.tells, bad), v.p.segment(), "the Terminate tells of the first error")
	v.p.wantEnd("the Terminate is the last message")
	require.NoError(v, v.p.c.Close())
	v.ended(a)
}

// ended checks what an attacked QP leaves behind.
func (v *victim) ended(a attack) {
	v.Helper()
	<-v.qp.Done()
	require.Equal(v, StateError, v.qp.State())
	v.wantCause(v.qp.Err(), a)
	v.wantCause(v.qp.PostSend(SendWR{Op: OpSend}), a)
	v.wantCause(v.qp.PostRecv(RecvWR{}), a)

	e := <-v.rnic.Events()
	require.Equal(v, EventTerminated, e.Kind, "the application is told")
	require.Same(v, v.qp, e.QP)
	v.wantCause(e.Err, a)

	v.wantCompletions(a)
	require.Equal(v, v.want, v.arena, "nothing was placed, in the region or around it")
	v.othersLive()
}

func (v *victim) wantCause(err error, a attack) {
	v.Helper()
	var te *TerminateError
	require.ErrorAs(v, err, &te)
	require.Equal(v, a.code, codeOf(te), "the local error has the code of the Terminate")
	require.False(v, te.Remote, "the error was found here")
	require.ErrorIs(v, err, net.ErrClosed)
	if a.is != nil {
		require.ErrorIs(v, err, a.is)
	}
}

// wantCompletions wants those of works, each once.
func (v *victim) wantCompletions(a attack) {
	v.Helper()
	want := map[uint64]Status{recvID: StatusFlushed, readID: StatusFlushed}
	if a.recv != StatusSuccess {
		want[recvID] = a.recv
	}
	if a.read != StatusSuccess {
		want[readID] = a.read
	}
	var wcs [3]WC
	got := map[uint64]Status{}
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
	require.Equal(v, StateRTS, v.other.State())
}

// tagged builds a tagged segment (RFC 5041 section 4.2).
func tagged(control, rdmap byte, st stag.STag, to uint64, payload string) []byte {
	b := []byte{control, rdmap}
	b = binary.BigEndian.AppendUint32(b, uint32(st))
	b = binary.BigEndian.AppendUint64(b, to)
	return append(b, payload...)
}

// untagged builds an untagged segment (RFC 5041 section 4.3).
func untagged(control, rdmap byte, word, qn, msn, mo uint32, payload string) []byte {
	b := []byte{control, rdmap}
	for _, x := range []uint32{word, qn, msn, mo} {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return append(b, payload...)
}

// write is the last segment of an RDMA Write.
func write(st stag.STag, to uint64, payload string) []byte {
	return tagged(0xc1, 0x40, st, to, payload)
}

// send is the last segment of a Send.
func send(msn, mo uint32, payload string) []byte {
	return untagged(0x41, 0x43, 0, 0, msn, mo, payload)
}

// readRequest is a Read Request (RFC 5040 section 4.4).
func readRequest(msn uint32, sink stag.STag, sinkTO uint64, size uint32, src stag.STag, srcTO uint64) []byte {
	b := untagged(0x41, 0x41, 0, 1, msn, 0, "")
	b = binary.BigEndian.AppendUint32(b, uint32(sink))
	b = binary.BigEndian.AppendUint64(b, sinkTO)
	b = binary.BigEndian.AppendUint32(b, size)
	b = binary.BigEndian.AppendUint32(b, uint32(src))
	return binary.BigEndian.AppendUint64(b, srcTO)
}

// response is a segment of a Read Response.
func response(control byte, st stag.STag, to uint64, payload string) []byte {
	return tagged(control, 0x42, st, to, payload)
}
