package dump

import (
	"bytes"
	"cmp"
	"container/list"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/goiwarp/iwarp/internal/crc32c"
	"github.com/goiwarp/iwarp/internal/pcap"
)

// Limits of what a Decoder keeps, for any capture.
const (
	// MaxConnections is how many TCP connections and SCTP sessions are known at a time. Beyond this number, the
	// connection that has been silent longest is forgotten.
	MaxConnections = 4096
	// MaxOutOfOrder is how many octets of one direction of a TCP connection may wait for earlier octets, including
	// 256 octets for each segment. Beyond this number, the earlier octets count as missing.
	MaxOutOfOrder = 1 << 20
	// MaxHeld is how many octets of all connections may wait for earlier octets or for the rest of an FPDU.
	MaxHeld = 64 << 20
)

// A Config contains information that the capture lacks. The zero value is valid.
type Config struct {
	// Protocols names the protocol above RDMAP by the port of the responder, in addition to those of NVMe
	// (4420) and NFS (20049): one of Protocols().
	Protocols map[uint16]string
}

// A Decoder decodes packets one by one.
type Decoder struct {
	cfg     Config
	conns   map[key]*conn
	order   *list.List // of conns, the longest silent one first
	last    int        // number of the newest connection
	held    int        // octets
	packet  pcap.Packet
	out     []Record
	decoded bool
	links   map[pcap.LinkType]struct{} // unknown link types
	foreign error                      // of the first packet with such a link
}

// key is a connection. The lesser address comes first.
type key struct {
	a, b   netip.AddrPort
	stream int32 // an SCTP stream, or one of the values below
}

const (
	streamTCP         = -1
	streamAssociation = -2
)

// New returns a Decoder.
func New(cfg Config) *Decoder {
	return &Decoder{cfg: cfg, conns: map[key]*conn{}, order: list.New(), links: map[pcap.LinkType]struct{}{}}
}

// Packet decodes a packet. The records are valid until the next call.
func (d *Decoder) Packet(p pcap.Packet) []Record {
	d.out, d.packet = d.out[:0], p
	if !p.Link.Known() {
		d.unknownLink()
		return d.out
	}
	ip, err := pcap.ParseIP(p.Link, p.Data)
	switch {
	case errors.Is(err, pcap.ErrNotIP):
	case err != nil:
		d.report(KindError).fail("the packet is cut short: %d octets of it are there", len(p.Data))
	default:
		d.ip(&ip)
	}
	return d.out
}

// unknownLink skips a packet, and reports the first one with its link type: other packets of the capture may have other link types.
func (d *Decoder) unknownLink() {
	p := &d.packet
	if _, said := d.links[p.Link]; said {
		return
	}
	if d.foreign == nil {
		d.foreign = fmt.Errorf("pcap: packet %d at octet %d: link type %d, of which nothing is known", p.Number, p.Offset, p.Link)
	}
	d.links[p.Link] = struct{}{}
	d.report(KindError).fail("link type %d, of which nothing is known: its packets are passed over", p.Link)
}

// The IP protocols that are decoded.
const (
	protoTCP  = 6
	protoUDP  = 17
	protoSCTP = 132
)

func (d *Decoder) ip(p *pcap.IP) {
	switch {
	case p.Protocol != protoTCP && p.Protocol != protoUDP && p.Protocol != protoSCTP:
	case p.Fragment && p.Protocol != protoUDP:
		d.report(KindError).fail("a fragment of an IP packet, which is not put together")
	case p.Protocol == protoTCP:
		s, err := p.TCP()
		if err != nil {
			d.report(KindError).fail("a TCP header that is cut short, or whose length cannot be: %d octets", len(p.Payload))
			return
		}
		d.tcp(&s)
	case p.Protocol == protoSCTP:
		d.sctp(p.Src, p.Dst, p.Payload, p.Missing > 0)
	case !p.Fragment && p.Missing == 0:
		d.udp(p)
	}
}

// udp looks for SCTP over UDP (RFC 6951). It may use any port: the checksum identifies it.
func (d *Decoder) udp(p *pcap.IP) {
	const udpHeader = 8
	if len(p.Payload) < udpHeader+sctpHeader {
		return
	}
	b := bytes.Clone(p.Payload[udpHeader:])
	sum := [4]byte(b[8:])
	clear(b[8:sctpHeader])
	if n := crc32c.Checksum(b); sum == [4]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)} {
		d.sctp(p.Src, p.Dst, p.Payload[udpHeader:], false)
	}
}

// report appends a record that belongs to no connection.
func (d *Decoder) report(k Kind) *Record {
	d.out = append(d.out, Record{Packet: d.packet.Number, Octet: d.packet.Offset, Time: d.packet.Time, Kind: k})
	return &d.out[len(d.out)-1]
}

// find returns a connection, or nil.
func (d *Decoder) find(k key) *conn {
	c := d.conns[k]
	if c != nil {
		d.order.MoveToBack(c.element)
	}
	return c
}

// add makes a connection, which replaces one with the same addresses.
func (d *Decoder) add(k key, client, server netip.AddrPort) *conn {
	if c := d.conns[k]; c != nil {
		d.forget(c)
	} else if len(d.conns) >= MaxConnections {
		d.forgetOldest()
	}
	c := &conn{d: d, key: k, client: client, server: server, overSCTP: k.stream != streamTCP}
	c.element = d.order.PushBack(c)
	d.conns[k] = c
	return c
}

func (d *Decoder) forgetOldest() {
	c, ok := d.order.Front().Value.(*conn)
	if !ok {
		return
	}
	if c.number != 0 && !c.ended {
		c.record(0, KindError).fail("the connection is forgotten: more than %d are known", MaxConnections)
	}
	d.forget(c)
}

func (d *Decoder) forget(c *conn) {
	if c.tcp != nil {
		for i := range c.tcp {
			c.tcp[i].release()
		}
	}
	d.order.Remove(c.element)
	delete(d.conns, c.key)
}

// End must be called at the end of the capture: it reports what is incomplete.
func (d *Decoder) End() []Record {
	d.out = d.out[:0]
	var open []*conn
	for _, c := range d.conns {
		if c.tcp != nil && !c.ended {
			open = append(open, c)
		}
	}
	sortConns(open)
	for _, c := range open {
		c.flush("the capture ends")
	}
	clear(d.conns)
	d.order.Init()
	d.held = 0
	return d.out
}

// keyOf returns the key of a connection between two ends.
func keyOf(a, b netip.AddrPort, stream int32) key {
	if cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Port(), b.Port())) > 0 {
		a, b = b, a
	}
	return key{a, b, stream}
}

// ErrForeign: no iWARP was found in a capture.
var ErrForeign = errors.New("no iWARP was found in the capture (without the set-up of a connection only FPDUs with CRCs are)")

// Capture decodes a capture while it is read, and calls emit with the records of each packet that has any. The records
// are valid until emit returns. An error of the capture names the packet and the octet.
func Capture(r io.Reader, cfg Config, emit func([]Record) error) error {
	pr, err := pcap.NewReader(r)
	if err != nil {
		return err
	}
	d := New(cfg)
	for {
		p, err := pr.Next()
		var out []Record
		if err != nil {
			out = d.End()
		} else {
			out = d.Packet(p)
		}
		if len(out) > 0 {
			if emitErr := emit(out); emitErr != nil {
				return emitErr
			}
		}
		switch {
		case err == nil:
		case !errors.Is(err, io.EOF):
			return err
		case !d.decoded && d.foreign != nil:
			return d.foreign
		case !d.decoded:
			return fmt.Errorf("%w: packet %d at octet %d is the last", ErrForeign, d.packet.Number, d.packet.Offset)
		default:
			return nil
		}
	}
}
