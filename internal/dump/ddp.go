package dump

import (
	"fmt"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// rtrKinds are the kinds of ready-to-receive message.
var rtrKinds = []struct {
	kind transport.RTR
	name string
}{{transport.RTRSend, "Send"}, {transport.RTRWrite, "RDMA Write"}, {transport.RTRRead, "RDMA Read"}}

// A binding is how messages of an opcode are sent (RFC 5040 section 4.1, RFC 7306 section 4).
type binding struct {
	name   string
	tagged bool
	qn     ddp.QN
}

// bindings holds the bindings of the opcodes. IANA has not assigned numbers for Commit: draft-talpey-rdma-commit-00 has chosen these.
var bindings = map[rdmap.Opcode]binding{
	rdmap.OpWrite:                   {tagged: true},
	rdmap.OpReadRequest:             {qn: rdmap.QNRequest},
	rdmap.OpReadResponse:            {tagged: true},
	rdmap.OpSend:                    {qn: rdmap.QNSend},
	rdmap.OpSendInvalidate:          {qn: rdmap.QNSend},
	rdmap.OpSendSolicited:           {qn: rdmap.QNSend},
	rdmap.OpSendSolicitedInvalidate: {qn: rdmap.QNSend},
	rdmap.OpTerminate:               {qn: rdmap.QNTerminate},
	rdmap.OpImmediate:               {qn: rdmap.QNSend},
	rdmap.OpImmediateSolicited:      {qn: rdmap.QNSend},
	rdmap.OpAtomicRequest:           {qn: rdmap.QNRequest},
	rdmap.OpAtomicResponse:          {qn: rdmap.QNResponse},
	commit.OpRequest:                {name: "Commit Request", qn: rdmap.QNRequest},
	commit.OpResponse:               {name: "Commit Response", qn: rdmap.QNResponse},
}

// nameOf returns an opcode in words.
func nameOf(op rdmap.Opcode) string {
	if b := bindings[op]; b.name != "" {
		return b.name
	}
	return op.String()
}

// ddp decodes a segment.
func (c *conn) ddp(r *Record, dir int, b []byte) {
	if len(b) < ddp.TaggedLen || !ddp.IsTagged(b) && len(b) < ddp.UntaggedLen {
		r.fail("a segment of %d octets, shorter than its header (RFC 5041 sections 4.2 and 4.3)", len(b))
		return
	}
	r.DDP = &DDP{Version: int(ddp.Version(b)), Tagged: ddp.IsTagged(b)}
	if r.DDP.Version != 1 {
		r.fail("DDP version %d (RFC 5041 section 4.1 has 1)", r.DDP.Version)
	}
	r.rdmap(b[1])
	op := rdmap.Opcode(r.RDMAP.Opcode)
	if r.DDP.Tagged {
		h, err := ddp.ParseTagged(b)
		if err != nil {
			r.fail("%v", err)
		}
		to := hex64(h.TO)
		r.DDP.Last, r.DDP.STag, r.DDP.TO, r.DDP.Length = h.Last, hex32(uint32(h.STag)), &to, len(b)-ddp.TaggedLen
		r.bound(op, 0)
		return
	}
	h, err := ddp.ParseUntagged(b)
	if err != nil {
		r.fail("%v", err)
	}
	qn, msn, mo := uint32(h.QN), uint32(h.MSN), h.MO
	r.DDP.Last, r.DDP.QN, r.DDP.MSN, r.DDP.MO, r.DDP.Length = h.Last, &qn, &msn, &mo, len(b)-ddp.UntaggedLen
	r.bound(op, h.QN)
	if op.Invalidates() {
		r.RDMAP.Invalidate = hex32(h.RsvdULPWord)
	}
	if !c.overSCTP {
		c.dirs[dir].check(r, &h)
	}
	c.message(r, dir, op, &h, b[ddp.UntaggedLen:])
}

// rdmap reads the control octet.
func (r *Record) rdmap(control byte) {
	r.RDMAP = &RDMAP{Version: int(control >> 6), Opcode: int(control & 0xf)}
	r.RDMAP.Name = nameOf(rdmap.Opcode(r.RDMAP.Opcode))
	if r.RDMAP.Version != 1 {
		r.fail("RDMAP version %d (RFC 5040 section 4.1 has 1)", r.RDMAP.Version)
	}
}

// bound checks that such a segment may have the opcode.
func (r *Record) bound(op rdmap.Opcode, qn ddp.QN) {
	b, known := bindings[op]
	switch {
	case !known:
		r.fail("opcode %#x is not assigned (RFC 6580 section 3.4)", uint8(op))
	case b.tagged != r.DDP.Tagged:
		r.fail("%s in a segment of the wrong model: tagged is %v (RFC 5040 section 4.1)", r.RDMAP.Name, r.DDP.Tagged)
	case !b.tagged && b.qn != qn:
		r.fail("%s on queue %d, which is sent on queue %d (RFC 5040 section 4.1)", r.RDMAP.Name, qn, b.qn)
	}
}

// A sequence is the position of the untagged queues of one direction.
type sequence struct {
	broken bool // octets are missing: the first message of each queue is accepted unchecked
	queues [4]queue
}

type queue struct {
	known bool
	msn   ddp.MSN
	mo    uint64
}

// check checks MSN and MO (RFC 5041 section 4.3).
func (s *sequence) check(r *Record, h *ddp.UntaggedHeader) {
	if int64(h.QN) >= int64(len(s.queues)) {
		return
	}
	q := &s.queues[h.QN]
	if !q.known && !s.broken {
		*q = queue{known: true, msn: 1}
	}
	if q.known && (h.MSN != q.msn || uint64(h.MO) != q.mo) {
		r.fail("MSN %d MO %d, where MSN %d MO %d is due on queue %d (RFC 5041 section 4.3)", h.MSN, h.MO, q.msn, q.mo, h.QN)
	}
	*q = queue{known: true, msn: h.MSN, mo: uint64(h.MO) + uint64(r.DDP.Length)}
	if h.Last {
		q.msn, q.mo = h.MSN+1, 0
	}
}

// message decodes the beginning of a message.
func (c *conn) message(r *Record, dir int, op rdmap.Opcode, h *ddp.UntaggedHeader, b []byte) {
	if h.MO != 0 {
		return
	}
	if op.IsSend() {
		r.Message = c.ulp.send(dir, h, b)
		return
	}
	decode := headers[op]
	if decode == nil {
		return
	}
	if !h.Last {
		r.fail("%s in more than one segment, whose header is not put together", r.RDMAP.Name)
		return
	}
	if err := decode(r.RDMAP, b); err != nil {
		r.fail("%v", err)
	}
}

// headers holds the decoders of messages that consist of one header.
var headers = map[rdmap.Opcode]func(*RDMAP, []byte) error{
	rdmap.OpReadRequest:        readRequest,
	rdmap.OpTerminate:          terminate,
	rdmap.OpImmediate:          immediate,
	rdmap.OpImmediateSolicited: immediate,
	rdmap.OpAtomicRequest:      atomicRequest,
	rdmap.OpAtomicResponse:     atomicResponse,
	commit.OpRequest:           commitRequest,
	commit.OpResponse:          commitResponse,
}

func readRequest(m *RDMAP, b []byte) error {
	h, err := rdmap.ParseReadRequest(b)
	if err != nil {
		return fmt.Errorf("%w (RFC 5040 section 4.4)", err)
	}
	m.Fields.add("sink_stag", hex32(uint32(h.Sink.STag)))
	m.Fields.add("sink_to", hex64(h.Sink.TO))
	m.Fields.add("size", h.Size)
	m.Fields.add("source_stag", hex32(uint32(h.Src.STag)))
	m.Fields.add("source_to", hex64(h.Src.TO))
	return nil
}

func immediate(m *RDMAP, b []byte) error {
	const size = 8
	if len(b) != size {
		return fmt.Errorf("immediate data of %d octets, which has %d (RFC 7306 section 6.3)", len(b), size)
	}
	m.Fields.add("data", Hex64(fmt.Sprintf("0x%x", b)))
	return nil
}

func atomicRequest(m *RDMAP, b []byte) error {
	h, err := rdmap.ParseAtomicRequest(b)
	if err != nil {
		return fmt.Errorf("%w (RFC 7306 section 5.2.1)", err)
	}
	switch h.Op {
	case rdmap.FetchAdd:
		m.Fields.add("operation", "FetchAdd")
	case rdmap.CompareSwap:
		m.Fields.add("operation", "CmpSwap")
	default:
		m.Fields.add("operation", fmt.Sprintf("operation %#x", uint8(h.Op)))
	}
	m.Fields.add("id", h.ID)
	m.Fields.add("stag", hex32(uint32(h.At.STag)))
	m.Fields.add("to", hex64(h.At.TO))
	m.Fields.add("data", hex64(h.Data))
	m.Fields.add("mask", hex64(h.Mask))
	if h.Op == rdmap.CompareSwap {
		m.Fields.add("compare", hex64(h.Compare))
		m.Fields.add("compare_mask", hex64(h.CompareMask))
	}
	return nil
}

func atomicResponse(m *RDMAP, b []byte) error {
	h, err := rdmap.ParseAtomicResponse(b)
	if err != nil {
		return fmt.Errorf("%w (RFC 7306 section 5.2.2)", err)
	}
	m.Fields.add("id", h.ID)
	m.Fields.add("original", hex64(h.Old))
	return nil
}

func commitRequest(m *RDMAP, b []byte) error {
	var h commit.Request
	if err := h.Parse(b); err != nil {
		return fmt.Errorf("%w (draft-talpey-rdma-commit-00 section 3.2.1)", err)
	}
	m.Fields.add("id", h.ID)
	m.Fields.add("regions", len(h.Regions))
	m.Fields.add("octets", h.Total())
	m.Fields.add("stag", hex32(uint32(h.Regions[0].STag)))
	m.Fields.add("to", hex64(h.Regions[0].TO))
	if h.HasFollowOn {
		m.Fields.add("then_stag", hex32(uint32(h.At.STag)))
		m.Fields.add("then_to", hex64(h.At.TO))
		m.Fields.add("then_value", hex64(h.Value))
	}
	return nil
}

func commitResponse(m *RDMAP, b []byte) error {
	h, err := commit.ParseResponse(b)
	if err != nil {
		return fmt.Errorf("%w (draft-talpey-rdma-commit-00 section 3.2.2)", err)
	}
	m.Fields.add("id", h.ID)
	m.Fields.add("status", h.Status.String())
	return nil
}
