package pcap

import (
	"cmp"
	"errors"
	"io"
	"net/netip"
	"slices"
)

// A Stream is one TCP connection of a capture, with its octets in order. The client is the end
// that sent the SYN, or, if the capture has no SYN, the end that sent first.
type Stream struct {
	Client, Server           netip.AddrPort
	ClientBytes, ServerBytes []byte // what each sent
	// A hole: the capture lacks octets that were sent. The bytes end before it.
	ClientHole, ServerHole bool
}

// Streams reads a capture to its end and reassembles its TCP connections, in the order
// in which they begin. Packets that are not TCP are skipped.
func Streams(r io.Reader) ([]Stream, error) {
	pr, err := NewReader(r)
	if err != nil {
		return nil, err
	}
	var a assembly
	for {
		p, err := pr.Next()
		if errors.Is(err, io.EOF) {
			return a.finish(), nil
		}
		if err != nil {
			return nil, err
		}
		s, err := Parse(p.Link, p.Data)
		switch {
		case err == nil:
			a.add(s)
		case !errors.Is(err, errNotTCP):
			return nil, err
		}
	}
}

// assembly is all connections of a capture.
type assembly struct{ conns []*connection }

type connection struct {
	client, server       netip.AddrPort
	fromClient, fromPeer direction
}

// direction is what one side sent.
type direction struct {
	known bool
	first uint32 // sequence number of the first octet
	segs  []piece
}

// piece is a segment's payload and its place in the stream.
type piece struct {
	at   int64
	data []byte
}

func (a *assembly) add(s Segment) {
	c := a.find(s)
	if c == nil {
		c = &connection{client: s.Src, server: s.Dst}
		if s.Flags&(SYN|ACK) == SYN|ACK { // the capture began after the SYN
			c.client, c.server = s.Dst, s.Src
		}
		a.conns = append(a.conns, c)
	}
	if s.Src == c.client {
		c.fromClient.add(s)
	} else {
		c.fromPeer.add(s)
	}
}

// find returns the newest connection between the ends of s. A SYN with another
// sequence number begins a new one.
func (a *assembly) find(s Segment) *connection {
	for _, c := range slices.Backward(a.conns) {
		ofClient := s.Src == c.client && s.Dst == c.server
		if !ofClient && (s.Src != c.server || s.Dst != c.client) {
			continue
		}
		if d := &c.fromClient; s.Flags&(SYN|ACK) == SYN && (!ofClient || d.known && d.first != s.Seq+1) {
			return nil
		}
		return c
	}
	return nil
}

func (d *direction) add(s Segment) {
	seq := s.Seq
	if s.Flags&SYN != 0 {
		seq++
	}
	if !d.known {
		d.known, d.first = true, seq
	}
	if len(s.Payload) == 0 {
		return
	}
	// The distance is taken from the last piece, so that a stream may be longer
	// than the range of sequence numbers.
	base := int64(0)
	if n := len(d.segs); n > 0 {
		base = d.segs[n-1].at
	}
	at := base + int64(int32(seq-(d.first+uint32(base))))
	d.segs = append(d.segs, piece{at: at, data: s.Payload})
}

// octets puts the pieces in order, up to the first hole; retransmitted octets count
// once.
func (d *direction) octets() (out []byte, hole bool) {
	slices.SortStableFunc(d.segs, func(a, b piece) int { return cmp.Compare(a.at, b.at) })
	for _, p := range d.segs {
		have := int64(len(out))
		if p.at > have {
			return out, true
		}
		if skip := have - p.at; skip < int64(len(p.data)) {
			out = append(out, p.data[skip:]...)
		}
	}
	return out, false
}

func (a *assembly) finish() []Stream {
	streams := make([]Stream, len(a.conns))
	for i, c := range a.conns {
		s := &streams[i]
		s.Client, s.Server = c.client, c.server
		s.ClientBytes, s.ClientHole = c.fromClient.octets()
		s.ServerBytes, s.ServerHole = c.fromPeer.octets()
	}
	return streams
}
