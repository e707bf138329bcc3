package dump

import (
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// terminate reads why the stream ends.
func terminate(m *RDMAP, b []byte) error {
	t, err := rdmap.ParseTerminate(b)
	if err != nil {
		return fmt.Errorf("%w (RFC 5040 section 4.8)", err)
	}
	const headers = 0xe0 // M, D and R
	swapped := t.Code != transport.Code(binary.BigEndian.Uint16(b)) || b[2]&headers == 0 && (t.SegmentLen >= 0 || t.DDPHeader != nil)
	m.Terminate = &Terminate{
		Layer: int(t.Code.Layer()), Type: int(t.Code.Type()), Code: int(t.Code.Code()),
		Name: t.Code.String(), Section: sectionOf(t.Code), Swapped: swapped,
	}
	if t.SegmentLen >= 0 {
		m.Terminate.Length = &t.SegmentLen
	}
	if t.DDPHeader != nil {
		m.Terminate.Segment = headerWords(t.DDPHeader)
	}
	if t.RDMAHeader != nil {
		return readRequest(m, t.RDMAHeader)
	}
	return nil
}

// sectionOf returns the section that defines a code.
func sectionOf(c transport.Code) string {
	switch {
	case c.Layer() == transport.LayerRDMAP:
		return "RFC 5040 section 4.8"
	case c.Layer() == transport.LayerDDP:
		return "RFC 5041 section 7.2"
	case c.Layer() == transport.LayerLLP && c >= transport.MPALocalCatastrophic:
		return "RFC 6581 section 8"
	case c.Layer() == transport.LayerLLP:
		return "RFC 5044 section 8"
	}
	return "RFC 6580 section 3"
}

// headerWords describes the header of a segment, which has the length of its model.
func headerWords(b []byte) string {
	op := nameOf(rdmap.Opcode(b[1] & 0xf))
	if h, err := ddp.ParseTagged(b); err == nil && ddp.IsTagged(b) {
		return fmt.Sprintf("%s, STag %s TO %s", op, hex32(uint32(h.STag)), hex64(h.TO))
	}
	h, err := ddp.ParseUntagged(b)
	if err != nil {
		return op
	}
	return fmt.Sprintf("%s, QN %d MSN %d MO %d", op, h.QN, h.MSN, h.MO)
}
