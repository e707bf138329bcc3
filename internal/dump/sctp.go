package dump

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/goiwarp/iwarp/internal/enhanced"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// Constants of SCTP packets (RFC 9260 section 3):
//
//	source port (2) | destination port (2) | verification tag (4) | CRC32c (4)
//	type (1) | flags (1) | length (2) | value, padded to four octets
const (
	sctpHeader      = 12
	chunkHeader     = 4
	dataHeader      = 16 // with TSN, stream, SSN and PPID
	initHeader      = 20 // with tag, credits, numbers of streams, and TSN
	parameterHeader = 4

	chunkData     = 0
	chunkInit     = 1
	chunkInitAck  = 2
	chunkAbort    = 6
	chunkShutdown = 7

	flagEnd       = 1
	flagBegin     = 2
	flagUnordered = 4

	parameterAdaptation = 0xc006
)

// maxTSN is how far behind the newest TSN a chunk may be and still be decoded.
const maxTSN = 4096

// A transmission records which chunks one end has sent.
type transmission struct {
	top  uint32 // the newest
	seen [maxTSN / 64]uint64
}

// again reports whether a chunk was sent before.
func (t *transmission) again(tsn uint32) bool {
	if int32(tsn-t.top) > 0 {
		for n := min(tsn-t.top, maxTSN); n > 0; n-- {
			t.set(t.top+n, false)
		}
		t.top = tsn
	}
	if t.top-tsn >= maxTSN {
		return true
	}
	if t.seen[tsn%maxTSN/64]&(1<<(tsn%64)) != 0 {
		return true
	}
	t.set(tsn, true)
	return false
}

func (t *transmission) set(tsn uint32, seen bool) {
	bit := uint64(1) << (tsn % 64)
	if seen {
		t.seen[tsn%maxTSN/64] |= bit
	} else {
		t.seen[tsn%maxTSN/64] &^= bit
	}
}

// sctp decodes a packet.
func (d *Decoder) sctp(from, to netip.Addr, b []byte, cutShort bool) {
	if len(b) < sctpHeader {
		d.report(KindError).fail("an SCTP packet of %d octets, shorter than its header (RFC 9260 section 3)", len(b))
		return
	}
	src := netip.AddrPortFrom(from, binary.BigEndian.Uint16(b))
	dst := netip.AddrPortFrom(to, binary.BigEndian.Uint16(b[2:]))
	for b = b[sctpHeader:]; len(b) >= chunkHeader; {
		n := int(binary.BigEndian.Uint16(b[2:]))
		if n < chunkHeader || n > len(b) {
			what := "whose length cannot be"
			if cutShort {
				what = "of which the capture has only the beginning"
			}
			d.report(KindError).fail("an SCTP chunk of %d octets, with %d left, %s (RFC 9260 section 3.2)", n, len(b), what)
			return
		}
		d.chunk(src, dst, b[:n])
		b = b[min(len(b), (n+3)&^3):]
	}
}

func (d *Decoder) chunk(src, dst netip.AddrPort, b []byte) {
	k := keyOf(src, dst, streamAssociation)
	switch b[0] {
	case chunkInit, chunkInitAck:
		c := d.find(k)
		if c == nil || c.ended || b[0] == chunkInit && src == c.server {
			client, server := src, dst
			if b[0] == chunkInitAck {
				client, server = dst, src
			}
			c = d.add(k, client, server)
		}
		c.init(c.side(src), b)
	case chunkAbort, chunkShutdown:
		c := d.find(k)
		if c != nil && c.number != 0 && !c.ended {
			c.ended = true
			c.record(c.side(src), KindEnd).Text = map[byte]string{chunkAbort: "ABORT", chunkShutdown: "SHUTDOWN"}[b[0]]
		}
	case chunkData:
		d.data(k, src, dst, b)
	}
}

// side returns the direction in which an end sends.
func (c *conn) side(src netip.AddrPort) int {
	if src == c.client {
		return 0
	}
	return 1
}

// init reads the parameters of INIT and INIT ACK. For an association without DDP it reports only that.
func (c *conn) init(dir int, b []byte) {
	c.seen = [2]*transmission{}
	r := c.record(dir, KindInit)
	r.Text = map[byte]string{chunkInit: "INIT", chunkInitAck: "INIT ACK"}[b[0]]
	for b = b[min(len(b), initHeader):]; len(b) >= parameterHeader; {
		n := int(binary.BigEndian.Uint16(b[2:]))
		if n < parameterHeader || n > len(b) {
			r.fail("a parameter of %d octets, with %d left (RFC 9260 section 3.2.1)", n, len(b))
			return
		}
		if binary.BigEndian.Uint16(b) == parameterAdaptation && n == 8 {
			if code := binary.BigEndian.Uint32(b[4:]); code != sctp.Adaptation {
				r.fail("adaptation indication %#x, where %d is that of DDP (RFC 5043 section 5.1)", code, sctp.Adaptation)
			}
			r.Text += " with adaptation indication"
			return
		}
		b = b[min(len(b), (n+3)&^3):]
	}
	r.fail("no adaptation indication: the association cannot carry DDP (RFC 5043 section 5.1)")
}

// data decodes a DATA chunk.
func (d *Decoder) data(k key, src, dst netip.AddrPort, b []byte) {
	if len(b) < dataHeader {
		d.report(KindError).fail("a DATA chunk of %d octets (RFC 9260 section 3.3.1)", len(b))
		return
	}
	be := binary.BigEndian
	x := SCTP{TSN: be.Uint32(b[4:]), Stream: be.Uint16(b[8:]), PPID: be.Uint32(b[12:])}
	if x.PPID != sctp.PPIDSegment && x.PPID != sctp.PPIDControl {
		return
	}
	a := d.find(k)
	if a == nil {
		a = d.add(k, src, dst)
	}
	side := a.side(src)
	if a.seen[side] == nil {
		a.seen[side] = &transmission{top: x.TSN}
	}
	if a.seen[side].again(x.TSN) {
		return
	}
	d.decoded = true
	flags, msg := b[1], b[dataHeader:]
	k.stream = int32(x.Stream)
	c := d.find(k)
	initiates := x.PPID == sctp.PPIDControl && len(msg) >= 4 && isInitiate(sctp.Function(be.Uint16(msg[2:])))
	if c == nil || initiates {
		c = d.add(k, src, dst)
	}
	r := c.record(c.side(src), KindSegment)
	r.SCTP = &x
	switch whole := byte(flagBegin | flagEnd); {
	case flags&whole != whole:
		r.fail("a fragment of a message, which is not put together (RFC 5043 section 9)")
		return
	case len(msg) < 2:
		r.fail("a message of %d octets, without a DDP-SSN (RFC 5043 section 5.2)", len(msg))
		return
	case flags&flagUnordered == 0:
		r.fail("an ordered message (RFC 5043 section 10)")
	}
	x.SSN = be.Uint16(msg)
	if x.PPID == sctp.PPIDSegment {
		c.ddp(r, c.side(src), msg[2:])
		return
	}
	r.Kind = KindControl
	c.control(r, c.side(src), msg[2:])
}

func isInitiate(f sctp.Function) bool { return f == sctp.Initiate || f == sctp.EnhancedInitiate }

// control decodes a session control message, from the function code on (RFC 5043 section 5.2.3, RFC 6581 section 7).
func (c *conn) control(r *Record, dir int, b []byte) {
	if len(b) < 2 {
		r.fail("a control message without a function code (RFC 5043 section 5.2.3)")
		return
	}
	f, private := sctp.Function(binary.BigEndian.Uint16(b)), b[2:]
	r.Setup = &Setup{Function: f.String(), Reject: f == sctp.Reject || f == sctp.EnhancedReject, Length: len(private)}
	switch {
	case f < sctp.Initiate || f > sctp.EnhancedReject:
		r.fail("a function that is not assigned (RFC 6580 section 3.5)")
	case len(private) > sctp.MaxPrivateData:
		r.fail("%d octets of private data, more than the %d that are possible (RFC 5043 section 5.2.3)", len(private), sctp.MaxPrivateData)
	case f == sctp.Terminate:
		if len(private) > 0 {
			r.fail("private data in a Terminate (RFC 5043 section 5.2.3)")
		}
		return
	case f >= sctp.EnhancedInitiate && (f != sctp.EnhancedReject || len(private) >= enhanced.Size):
		r.Setup.Enhanced = true
		private = r.enhanced(private)
	}
	r.Setup.Private = len(private)
	c.setup(r, dir, isInitiate(f), private)
}

// words describes the chunk.
func (x *SCTP) words() string { return fmt.Sprintf("stream %d SSN %d TSN %d", x.Stream, x.SSN, x.TSN) }
