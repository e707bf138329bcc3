package dump

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/internal/enhanced"
	"github.com/goiwarp/iwarp/mpa"
)

// The keys of the set-up frames (RFC 5044 section 7.1.1).
const (
	requestKey = "MPA ID Req Frame"
	replyKey   = "MPA ID Rep Frame"
)

// maxEarly is how many octets may follow a Request before the Reply determines how to read them.
const maxEarly = 1 << 16

// A framingState is the state of one half of a connection.
type framingState uint8

const (
	stateStart   framingState = iota // a Request or Reply is due
	stateWait                        // the frame of the other half is due
	stateFull                        // FPDUs
	stateLost                        // searching for an FPDU boundary
	stateOver                        // nothing more is decoded
	stateForeign                     // the stream is not iWARP
)

// A framing parses the octets of one half.
type framing struct {
	h      *half
	state  framingState
	midway bool // the capture lacks the beginning
	buf    []byte
	base   int64 // position of buf in the stream

	frame     mpa.Frame
	have      bool // frame
	initiator bool

	crc, markers bool  // used by this half when it sends
	full         int64 // position of the first octet of Full Operation
	starts       []int64
	skipped      int64 // octets that were not decoded
	gaveUp       bool
}

func (f *framing) init(h *half, begun bool) { f.h, f.midway = h, !begun }

func (f *framing) peer() *framing { return &f.h.c.tcp[1-f.h.dir].mpa }

// data takes the next octets in order.
func (f *framing) data(b []byte) {
	if f.state >= stateOver {
		f.skipped += int64(len(b))
		return
	}
	at := f.h.pos - int64(len(b))
	if len(f.buf) == 0 {
		f.base = at
	}
	if f.state == stateLost {
		f.mayStart(at)
	}
	f.buf = append(f.buf, b...)
	f.run()
	if f.h.c.d.held+len(f.buf) > MaxHeld {
		f.giveUp("more than %d octets of all connections wait for others", MaxHeld)
	}
	f.h.account()
}

// run decodes as much as possible.
func (f *framing) run() {
	for len(f.buf) > 0 && f.advance() {
	}
	if len(f.buf) == 0 || f.state >= stateOver {
		f.skipped += int64(len(f.buf))
		f.buf = nil
	}
}

func (f *framing) advance() bool {
	switch f.state {
	case stateStart:
		return f.setup()
	case stateWait:
		if len(f.buf) > maxEarly {
			f.lose()
			return true
		}
	case stateFull:
		return f.fpdu()
	case stateLost:
		return f.search()
	case stateOver, stateForeign:
	}
	return false
}

// eat removes octets that were decoded.
func (f *framing) eat(n int) {
	f.base += int64(n)
	f.buf = f.buf[n:]
}

// giveUp ends the decoding of this half.
func (f *framing) giveUp(format string, args ...any) {
	f.h.c.record(f.h.dir, KindError).fail("%s: what follows in this direction is not decoded", fmt.Sprintf(format, args...))
	f.skipped += int64(len(f.buf))
	f.state, f.buf, f.gaveUp = stateOver, nil, true
}

// setup reads a Request or Reply.
func (f *framing) setup() bool {
	n := min(len(f.buf), len(requestKey))
	isRequest := string(f.buf[:n]) == requestKey[:n]
	if !isRequest && string(f.buf[:n]) != replyKey[:n] {
		f.foreign()
		return true
	}
	if len(f.buf) < mpa.HeaderSize {
		return false
	}
	parse := mpa.ParseReplyHeader
	if isRequest {
		parse = mpa.ParseRequestHeader
	}
	frame, size, err := parse(f.buf)
	if err == nil && len(f.buf) < mpa.HeaderSize+size {
		return false
	}
	c := f.h.c
	c.d.decoded = true
	r := c.record(f.h.dir, KindReply)
	if isRequest {
		r.Kind = KindRequest
	}
	r.Setup = &Setup{
		Revision: int(f.buf[17]), Markers: frame.Markers, CRC: frame.CRC, Reject: frame.Reject, Enhanced: frame.Enhanced,
		Length: int(binary.BigEndian.Uint16(f.buf[18:])),
	}
	if err != nil {
		r.fail("%v (RFC 5044 section 7.1.1)", err)
		f.skipped += int64(len(f.buf))
		f.state, f.buf = stateOver, nil
		return false
	}
	private := f.buf[mpa.HeaderSize : mpa.HeaderSize+size]
	if frame.Enhanced {
		private = r.enhanced(private)
	}
	r.Setup.Private = len(private)
	c.setup(r, f.h.dir, isRequest, private)
	f.frame, f.have, f.initiator = frame, true, isRequest
	f.eat(mpa.HeaderSize + size)
	f.full, f.state = f.base, stateWait
	f.negotiated()
	return true
}

// enhanced reads the enhanced data, and returns the rest.
func (r *Record) enhanced(b []byte) []byte {
	d, err := enhanced.Parse(b)
	if err != nil {
		r.fail("%v (RFC 6581 section 9)", err)
		return b
	}
	s := r.Setup
	s.PeerToPeer = d.PeerToPeer
	for _, k := range rtrKinds {
		if d.RTR&k.kind != 0 {
			s.RTR = append(s.RTR, k.name)
		}
	}
	s.IRD, s.ORD = depth(d.IRD), depth(d.ORD)
	return b[enhanced.Size:]
}

func depth(n uint16) *int {
	if n == enhanced.Unset {
		return nil
	}
	v := int(n)
	return &v
}

// negotiated enters Full Operation when both frames are known (RFC 5044 section 7.1).
func (f *framing) negotiated() {
	p := f.peer()
	switch {
	case p.have && f.have && f.initiator == p.initiator:
		f.giveUp("both ends sent the same kind of frame (RFC 5044 section 7.1.2)")
		p.state, p.buf = stateOver, nil
	case p.have && f.have:
		f.begin(p)
		p.begin(f)
		p.run()
		p.h.account()
	case !f.initiator: // the capture lacks the Request
		f.lose()
	}
}

// agreed reports whether the frames of both sides are known.
func (f *framing) agreed() bool { return f.have && f.peer().have }

// begin sets what the two frames say about this half.
func (f *framing) begin(p *framing) {
	if f.state == stateFull { // an FPDU was found by its CRC
		return
	}
	f.crc, f.markers = f.frame.CRC || p.frame.CRC, p.frame.Markers
	switch {
	case f.frame.Reject || p.frame.Reject:
		f.state = stateOver
	case f.state == stateWait:
		f.state = stateFull
	case f.state == stateLost: // octets were missing after the frame
		f.lose()
	}
}

// foreign records that the stream is not iWARP.
func (f *framing) foreign() {
	if f.midway {
		f.lose()
		return
	}
	if f.peer().state != stateForeign && !f.peer().have {
		head := f.buf[:min(len(f.buf), 16)]
		r := f.h.c.record(f.h.dir, KindError)
		if len(head) > 2 && (head[0] == 0x16 || head[0] == 0x15) && head[1] == 3 {
			r.fail("TLS, which hides what is in it; QPConfig.Trace of one end has it in plain text")
		} else {
			r.fail("no iWARP: the stream begins with %q, and not with an MPA frame (RFC 5044 section 7.1.1)", head)
		}
	} else if f.peer().have {
		r := f.h.c.record(f.h.dir, KindError)
		r.fail("this direction begins with %q, and not with an MPA frame (RFC 5044 section 7.1.1)", f.buf[:min(len(f.buf), 16)])
	}
	f.state = stateForeign
}

// finish reports what is incomplete when the half ends.
func (f *framing) finish(why string) {
	if f.h == nil || f.state == stateForeign {
		return
	}
	n := len(f.buf)
	switch {
	case f.state == stateLost:
		f.skipped += int64(n)
		if f.skipped > 0 {
			r := f.h.c.record(f.h.dir, KindGap)
			r.Octets, r.Text = f.skipped, "not decoded: no FPDU with a valid CRC was found in them"
		}
	case f.gaveUp && f.skipped > 0:
		r := f.h.c.record(f.h.dir, KindGap)
		r.Octets, r.Text = f.skipped, "not decoded"
	case n == 0 || f.state >= stateOver:
	case f.state == stateFull:
		f.h.c.record(f.h.dir, KindError).fail("%s within an FPDU, of which %d octets are there (RFC 5044 section 4.1)", why, n)
	case f.state == stateWait:
		f.h.c.record(f.h.dir, KindError).fail("%s before the frame of the other side, which tells how to read the %d octets that follow (RFC 5044 section 7.1)", why, n)
	case bytes.HasPrefix([]byte("MPA ID Re"), f.buf[:min(n, 9)]):
		f.h.c.record(f.h.dir, KindError).fail("%s within a frame of set-up, of which %d octets are there (RFC 5044 section 7.1.1)", why, n)
	}
	f.state, f.buf, f.gaveUp = stateOver, nil, false
}
