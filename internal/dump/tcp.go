package dump

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/goiwarp/iwarp/internal/pcap"
)

// pieceCost is what each piece counts in addition to its octets.
const pieceCost = 256

// lateSegments is how many segments may follow octets that the peer has acknowledged but the capture lacks, before these
// octets count as missing: packets may be captured in another order than they were sent.
const lateSegments = 3

// A half is one direction of a TCP connection.
type half struct {
	c   *conn
	dir int

	known  bool
	first  uint32 // sequence number of the first octet
	next   uint32 // of the next expected octet
	pos    int64  // its position in the stream
	pieces []piece
	held   int   // octets that the Decoder counts: pieces and mpa.buf
	acked  int64 // position up to which the peer has acknowledged
	fin    int64 // position of the FIN, -1: none
	closed bool  // the FIN is reported

	mpa framing
}

// A piece is payload that was captured before earlier octets.
type piece struct {
	pos  int64
	data []byte
}

func (d *Decoder) tcp(s *pcap.Segment) {
	k := keyOf(s.Src, s.Dst, streamTCP)
	c := d.find(k)
	const syn, synAck = pcap.SYN, pcap.SYN | pcap.ACK
	if c == nil || s.Flags&synAck == syn && !c.isSYN(s) {
		if c == nil && s.Flags&pcap.SYN == 0 && len(s.Payload) == 0 {
			return // the end of a connection, or a mere acknowledgement
		}
		client, server := s.Src, s.Dst
		if s.Flags&synAck == synAck { // the capture lacks the SYN
			client, server = s.Dst, s.Src
		}
		if c != nil && !c.ended {
			c.flush("another connection begins")
		}
		c = d.add(k, client, server)
		c.tcp = new([2]half)
		for i := range c.tcp {
			h := &c.tcp[i]
			h.c, h.dir, h.fin = c, i, -1
		}
	}
	if c.ended {
		return
	}
	dir := 0
	if s.Src != c.client {
		dir = 1
	}
	c.segment(dir, s)
}

// isSYN reports whether s is a retransmission of the SYN that began the connection.
func (c *conn) isSYN(s *pcap.Segment) bool {
	return !c.ended && s.Src == c.client && (!c.tcp[0].known || c.tcp[0].first == s.Seq+1)
}

func (c *conn) segment(dir int, s *pcap.Segment) {
	h, peer := &c.tcp[dir], &c.tcp[1-dir]
	if s.Flags&pcap.ACK != 0 {
		peer.acknowledged(s.Ack)
	}
	h.take(s)
	if s.Flags&pcap.RST != 0 {
		c.flush("the connection is reset")
		r := c.end(dir)
		if r != nil {
			r.Text = "RST"
		}
		c.ended = true
		return
	}
	h.close()
	peer.close()
	if h.closed && peer.closed {
		c.flush("the connection is closed")
		c.ended = true
	}
}

// close reports the FIN when all octets before it are decoded or given up.
func (h *half) close() {
	if h.fin < 0 || h.pos < h.fin || h.closed {
		return
	}
	h.closed = true
	h.mpa.finish("the sender has closed its half")
	if r := h.c.end(h.dir); r != nil {
		r.Text = "FIN"
	}
}

// end appends the record of the end, except for a connection without any record so far, and for one that is not
// iWARP.
func (c *conn) end(dir int) *Record {
	f, peer := &c.tcp[dir].mpa, &c.tcp[1-dir].mpa
	if c.number == 0 || f.state == stateForeign || peer.state == stateForeign && !f.have {
		return nil
	}
	return c.record(dir, KindEnd)
}

// flush gives up what is incomplete.
func (c *conn) flush(why string) {
	for i := range c.tcp {
		h := &c.tcp[i]
		for len(h.pieces) > 0 {
			h.giveUp()
		}
		h.close()
		h.mpa.finish(why)
		h.release()
	}
}

// release frees what is held.
func (h *half) release() {
	h.pieces = nil
	h.mpa.buf = nil
	h.account()
}

// account updates the Decoder's count of held octets.
func (h *half) account() {
	held := len(h.mpa.buf)
	for _, p := range h.pieces {
		held += len(p.data) + pieceCost
	}
	h.c.d.held += held - h.held
	h.held = held
}

func (h *half) acknowledged(ack uint32) {
	if h.known {
		h.acked = max(h.acked, h.pos+int64(int32(ack-h.next)))
		h.missing()
	}
}

// take takes a segment.
func (h *half) take(s *pcap.Segment) {
	seq := s.Seq
	if s.Flags&pcap.SYN != 0 {
		seq++
	}
	if !h.known {
		h.known, h.first, h.next = true, seq, seq
		h.mpa.init(h, s.Flags&pcap.SYN != 0)
	}
	pos := h.pos + int64(int32(seq-h.next))
	cut := pos + int64(len(s.Payload))
	end := cut + int64(s.Missing)
	if s.Flags&pcap.FIN != 0 {
		h.fin = end
	}
	switch {
	case cut <= h.pos: // sent again
	case pos > h.pos:
		h.hold(pos, s.Payload)
	default:
		h.deliver(s.Payload[h.pos-pos:])
		h.drain()
	}
	if end > cut && end > h.pos { // no octet is at the end; the octets before it count as missing
		h.hold(end, nil)
	}
}

// deliver passes on octets that are in order.
func (h *half) deliver(b []byte) {
	h.pos += int64(len(b))
	h.next += uint32(len(b))
	h.mpa.data(b)
}

// hold keeps octets until the earlier ones arrive.
func (h *half) hold(pos int64, b []byte) {
	cost := len(b) + pieceCost
	i, _ := slices.BinarySearchFunc(h.pieces, pos, func(p piece, pos int64) int { return cmp.Compare(p.pos, pos) })
	h.pieces = slices.Insert(h.pieces, i, piece{pos, bytes.Clone(b)})
	h.held += cost
	h.c.d.held += cost
	for len(h.pieces) > 0 && (h.held > MaxOutOfOrder || h.c.d.held > MaxHeld) {
		h.giveUp()
	}
	h.missing()
}

// missing gives up octets that the peer has but the capture lacks.
func (h *half) missing() {
	for len(h.pieces) >= lateSegments && h.acked >= h.pieces[0].pos {
		h.giveUp()
	}
}

// giveUp continues after the missing octets.
func (h *half) giveUp() {
	n := h.pieces[0].pos - h.pos
	h.pos += n
	h.next += uint32(n)
	h.mpa.gap(n)
	h.drain()
}

// drain delivers the pieces that are due.
func (h *half) drain() {
	n := 0
	for _, p := range h.pieces {
		if p.pos > h.pos {
			break
		}
		n++
		if skip := h.pos - p.pos; skip < int64(len(p.data)) {
			h.deliver(p.data[skip:])
		}
	}
	if n > 0 {
		h.pieces = slices.Delete(h.pieces, 0, n)
		h.account()
	}
}
