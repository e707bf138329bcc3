package iwarp

import (
	"errors"
	"fmt"
	"math"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
)

// PostSend posts work requests to the send queue, in order. It never waits for the network. It
// stops at the first work request that cannot be queued, and returns a *[PostError]; those
// before it are queued. The slice may be reused at once, but the memory that its elements name
// belongs to the QP until they complete.
//
// Work that is posted while the QP is Idle, in QPConfig.Setup, waits for the connection. An
// initiator then sends it at once, a responder when it has received the initiator's first
// message (RFC 5044 section 7.1.2). If set-up fails the work is flushed. A Commit is refused then,
// because the peer determines its limits.
func (qp *QP) PostSend(wrs ...SendWR) error {
	return qp.postSend(wrs, sizes(wrs, new([8]int64)), nil)
}

// postSend implements PostSend. known holds the sizes of Buffers, see sizes. For a blocking helper, ws has one element for
// each request.
func (qp *QP) postSend(wrs []SendWR, known []int64, ws []*helper) error {
	conn := qp.conn.Load()
	if conn == nil {
		return qp.postEarly(wrs, known, ws)
	}
	reserved := 0
	n, err := qp.stream.Post(len(wrs), func(i int, r *rdmap.Request) error {
		if i == 0 {
			reserved = qp.sendSlots.Reserve(qp.cfg.SendDepth, len(wrs))
		}
		if ws != nil {
			r.Tag = ws[i]
		}
		if i == reserved { // before fill, which uses a key up for a Register or a Bind
			return ErrQueueFull
		}
		if err := qp.fill(r, &wrs[i], known[min(i, len(known)):]); err != nil {
			return err
		}
		if r.Enable != nil {
			wrs[i].named(r.Enable)
		}
		return nil
	})
	if n < reserved {
		qp.sendSlots.Release(reserved - n)
	}
	if n > 0 {
		conn.Post()
	}
	if err == nil {
		return nil
	}
	return &PostError{N: n, Err: qp.postError(err)}
}

func (qp *QP) postError(err error) error {
	switch {
	case errors.Is(err, rdmap.ErrQueueFull), errors.Is(err, ErrQueueFull):
		return fmt.Errorf("%w: %d send work requests", ErrQueueFull, qp.cfg.SendDepth)
	case errors.Is(err, rdmap.ErrEnded):
		return qp.cause()
	}
	return err
}

// fill checks a work request and translates it. known begins with the size of its Buffer, if there is one.
func (qp *QP) fill(r *rdmap.Request, wr *SendWR, known []int64) error {
	r.ID, r.Bits = wr.ID, uint32(makeBits(wr.Op, wr.Flags))
	qp.rnic.tally.Stamp(&r.Posted)
	if wr.Flags&^Unsignaled != 0 {
		if err := fillFlags(r, wr); err != nil {
			return err
		}
	}
	switch wr.Op {
	case OpSend, OpSendInvalidate:
		return qp.fillSend(r, wr)
	case OpRDMAWrite:
		return qp.fillWrite(r, wr)
	case OpRDMARead, OpRDMAReadInvalidate:
		return qp.fillRead(r, wr)
	case OpRDMAWriteImm:
		r.Flags |= rdmap.WithImmediate
		r.Imm = wr.Imm
		return qp.fillWrite(r, wr)
	case OpImmediate:
		return fillImmediate(r, wr)
	case OpFetchAdd, OpCompareSwap, OpSwap:
		return fillAtomic(r, wr)
	case OpLocalInvalidate:
		return qp.fillInvalidate(r, wr)
	case OpRegister:
		return qp.fillRegister(r, wr, known)
	case OpCommit:
		return qp.fillCommit(r, wr)
	case OpBind:
		return qp.fillBind(r, wr)
	default:
		return errOp(wr.Op)
	}
}

func fillFlags(r *rdmap.Request, wr *SendWR) error {
	if wr.Flags&ReadFence != 0 {
		r.Flags |= rdmap.ReadFence
	}
	if wr.Flags&LocalFence != 0 {
		r.Flags |= rdmap.LocalFence
	}
	if wr.Flags&^allFlags != 0 {
		return errFlags(wr.Flags)
	}
	if wr.Flags&Solicited != 0 {
		if !wr.Op.takesReceive() {
			return errSolicited(wr.Op)
		}
		r.Flags |= rdmap.Solicited
	}
	return nil
}

func (qp *QP) fillSend(r *rdmap.Request, wr *SendWR) error {
	r.Kind = rdmap.KindSend
	if wr.Op == OpSendInvalidate {
		r.Flags |= rdmap.Invalidating
		r.Invalidate = wr.Invalidate
	}
	_, err := qp.fillSource(r, wr)
	return err
}

func (qp *QP) fillWrite(r *rdmap.Request, wr *SendWR) error {
	r.Kind = rdmap.KindWrite
	n, err := qp.fillSource(r, wr)
	if err != nil {
		return err
	}
	return fillRemote(r, wr, n)
}

func (qp *QP) fillRead(r *rdmap.Request, wr *SendWR) error {
	r.Kind = rdmap.KindRead
	if wr.Op == OpRDMAReadInvalidate {
		r.Flags |= rdmap.Invalidating
	}
	switch {
	case len(wr.Inline) > 0:
		return fmt.Errorf("iwarp: %v takes no inline data", wr.Op)
	case len(wr.Local) > 1 || len(wr.Local) == 0 && wr.Remote.Len > 0:
		return fmt.Errorf("iwarp: %v takes exactly one SGE, not %d", wr.Op, len(wr.Local))
	}
	var err error
	var n uint64
	if r.Spans, n, err = qp.spans(r.Spans, wr.Local, stag.LocalWrite); err != nil {
		return err
	}
	if n == 0 && wr.Op == OpRDMAReadInvalidate {
		return fmt.Errorf("iwarp: %v of 0 octets has no sink to invalidate", wr.Op)
	}
	if err = qp.window.Fill(r, wr.Class, n); err != nil {
		return err
	}
	return fillRemote(r, wr, n)
}

func fillRemote(r *rdmap.Request, wr *SendWR, n uint64) error {
	if n > uint64(wr.Remote.Len) {
		return fmt.Errorf("%w: %v of %d octets, the RemoteBuffer has %d", ErrBounds, wr.Op, n, wr.Remote.Len)
	}
	r.Remote = rdmap.RemoteAddr{STag: wr.Remote.STag, TO: wr.Remote.TO}
	return nil
}

// fillSource sets the payload of a Send or Write.
func (qp *QP) fillSource(r *rdmap.Request, wr *SendWR) (n uint64, err error) {
	if len(wr.Inline) == 0 {
		r.Spans, n, err = qp.spans(r.Spans, wr.Local, 0)
		return n, err
	}
	switch most := qp.rnic.limits.MaxInline; {
	case len(wr.Local) > 0:
		return 0, errors.New("iwarp: a work request has Local or Inline, not both")
	case len(wr.Inline) > most:
		return 0, errInline(len(wr.Inline), most)
	}
	r.Inline, r.Inlined = append(r.Inline[:0], wr.Inline...), true
	return uint64(len(wr.Inline)), nil
}

// spans checks SGEs and appends their spans to dst. It ignores SGEs of length 0
// (draft-hilland-rddp-verbs section 8.1.3.2).
func (qp *QP) spans(dst []stag.Span, sges []SGE, need stag.Access) ([]stag.Span, uint64, error) {
	return qp.cfg.PD.spans(dst, sges, need, qp.id)
}

// spans is like QP.spans, for a stream of the PD, or for all of its streams if stream is 0.
func (pd *PD) spans(dst []stag.Span, sges []SGE, need stag.Access, stream uint64) ([]stag.Span, uint64, error) {
	if len(sges) > pd.rnic.limits.MaxSGE {
		return dst, 0, errSGEs(len(sges), pd.rnic.limits.MaxSGE)
	}
	var sum uint64
	for i := range sges {
		s := &sges[i]
		if s.Len == 0 {
			continue
		}
		region, fault := pd.checkSGE(s, need, stream)
		if fault != sgeFine {
			return dst, 0, errSGE(i, s, fault)
		}
		dst = append(dst, stag.Span{})
		d := &dst[len(dst)-1] // filled in place: copying what was just written in pieces stalls
		d.Region, d.Off, d.Len = region, uint64(s.Off), s.Len
		sum += uint64(s.Len)
	}
	if sum > math.MaxUint32 {
		return dst, 0, errLong(sum)
	}
	return dst, sum, nil
}

// checkSGE returns the region of an SGE. A region that a queued work request registers may
// still be INVALID at this time; whether it is VALID is checked when the request is executed.
func (pd *PD) checkSGE(s *SGE, need stag.Access, stream uint64) (*stag.Region, sgeFault) {
	if s.MR == nil {
		return nil, sgeNoRegion
	}
	r := s.MR.region()
	switch {
	case s.MR.pd != pd:
		return nil, sgeOtherPD
	case r.Scope().Stream != 0 && r.Scope().Stream != stream:
		return nil, sgeOtherQP
	case !contains(r, s.Off, s.Len):
		return nil, sgeOutside
	case r.Access()&need != need:
		return nil, sgeNoRight
	case !r.Valid() && (s.MR.fast == nil || s.MR.fast.Live().Closing()):
		return nil, sgeInvalid
	}
	return r, sgeFine
}

// PostRecv posts receives for messages of the peer, in order. It may be called as soon as the
// QP exists, in QPConfig.Setup. It fails on a QP with an SRQ. Its errors are like those of
// PostSend.
func (qp *QP) PostRecv(wrs ...RecvWR) error {
	if n, err := qp.postRecv(wrs, nil); err != nil {
		return &PostError{N: n, Err: err}
	}
	return nil
}

// postRecv implements PostRecv. For a blocking helper, w is not nil and wrs has one element. An
// Idle QP refuses it, as postEarly does.
func (qp *QP) postRecv(wrs []RecvWR, w *helper) (n int, err error) {
	switch {
	case qp.cfg.SRQ != nil:
		return 0, errHasSRQ
	case w != nil && qp.conn.Load() == nil:
		return 0, unconnected(qp)
	}
	n, err = qp.rq.post(wrs, w)
	if conn := qp.conn.Load(); conn != nil && n > 0 {
		conn.Resume()
	}
	return n, err
}
