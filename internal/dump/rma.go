package dump

import (
	"encoding/binary"
	"fmt"
)

// rmaHeader is the length of the header of package rma's messages:
//
//	0 version 1 | 1 type | 2 class | 3 flags 0 | 4 length of the message | 6 zero | 8 number | 16 slot | 18 sequence
const rmaHeader = 24

// A rmaLayout is a type of message: its length, and the fields of its body that are not encrypted.
type rmaLayout struct {
	name   string
	size   int
	fields []rmaField
}

type rmaField struct {
	name string
	at   int
	size int
	kind rmaKind
}

type rmaKind uint8

const (
	number rmaKind = iota
	octets         // shown as hexadecimal
	handle         // an STag or TO
)

var rmaLayouts = map[byte]rmaLayout{
	1: {"HELLO", 80, []rmaField{
		{"suites", 24, 2, handle},
		{"chosen", 26, 2, handle},
		{"max_op", 28, 4, number},
		{"depth", 32, 2, number},
		{"pull_timeout_us", 36, 4, number},
		{"guard_us", 40, 4, number},
		{"linger_us", 44, 4, number},
		{"instance", 48, 16, octets},
	}},
	2: {"OPEN_REQ", 72, []rmaField{{"region", 24, 8, handle}, {"instance", 32, 16, octets}, {"operations", 48, 1, handle}}},
	3: {"OPEN_REP", 168, []rmaField{{"region", 24, 8, handle}, {"epoch", 32, 4, number}, {"size", 40, 8, number}, {"operations", 48, 1, handle}}},
	4: {"READ_REQ", 96, []rmaField{
		{"region", 24, 8, handle},
		{"epoch", 32, 4, number},
		{"offset", 40, 8, number},
		{"length", 56, 4, number},
		{"sink_stag", 36, 4, handle},
		{"sink_to", 48, 8, handle},
		{"ttl_us", 60, 4, number},
	}},
	5: {"READ_DONE", 56, []rmaField{{"data_number", 24, 8, number}, {"length", 32, 4, number}, {"epoch", 36, 4, number}}},
	6: {"WRITE_REQ", 96, []rmaField{
		{"region", 24, 8, handle},
		{"epoch", 32, 4, number},
		{"offset", 40, 8, number},
		{"length", 36, 4, number},
		{"source_stag", 48, 4, handle},
		{"source_to", 56, 8, handle},
	}},
	7: {"PULL", 80, []rmaField{
		{"salt", 24, 16, octets},
		{"sink_stag", 40, 4, handle},
		{"sink_to", 48, 8, handle},
		{"length", 44, 4, number},
		{"timeout_us", 56, 4, number},
	}},
	8: {"DATA", 56, []rmaField{{"data_number", 24, 8, number}, {"length", 32, 4, number}}},
	9: {"WRITE_DONE", 64, []rmaField{{"salt", 24, 16, octets}, {"length", 40, 4, number}, {"epoch", 44, 4, number}}},
	10: {"STATUS", 64, []rmaField{
		{"code", 24, 2, number},
		{"reason", 26, 2, number},
		{"retry_after_us", 28, 4, number},
		{"region", 32, 8, handle},
		{"epoch", 40, 4, number},
	}},
	11: {"REKEY_REQ", 112, []rmaField{{"region", 24, 8, handle}, {"epoch", 32, 4, number}, {"grace_ms", 36, 4, number}, {"next", 40, 4, number}}},
	12: {"REKEY_DONE", 56, []rmaField{{"region", 24, 8, handle}, {"epoch", 32, 4, number}}},
}

// isHello reports whether a Send, which is the first one, is a HELLO of package rma. Nothing else identifies connections
// of this package. Length, header, limits and reserved fields must be right.
func isHello(b []byte) bool {
	const hello, maxOp = 1, 65536
	be := binary.BigEndian
	if len(b) != rmaLayouts[hello].size || b[0] != 1 || b[1] != hello || b[2] > 1 || b[3] != 0 || int(be.Uint16(b[4:])) != len(b) || be.Uint16(b[6:]) != 0 {
		return false
	}
	op := be.Uint32(b[28:])
	return be.Uint64(b[8:]) == 0 && be.Uint64(b[16:]) == 0 && be.Uint16(b[34:]) == 0 && op >= 512 && op <= maxOp
}

// rmaMessage reads a message of package rma. It does not show encrypted parts.
func rmaMessage(b []byte) *Block {
	if len(b) < rmaHeader {
		return &Block{protocolRMA, fmt.Sprintf("a message of %d octets, which is none", len(b)), nil}
	}
	l, known := rmaLayouts[b[1]]
	if !known || len(b) != l.size {
		return &Block{protocolRMA, fmt.Sprintf("type %d of %d octets, which is none", b[1], len(b)), nil}
	}
	block := &Block{protocolRMA, l.name, Fields{
		{"number", binary.BigEndian.Uint64(b[8:])}, {"slot", binary.BigEndian.Uint16(b[16:])}, {"sequence", binary.BigEndian.Uint64(b[16:]) & (1<<48 - 1)},
	}}
	for _, f := range l.fields {
		block.Fields.add(f.name, f.value(b[f.at:f.at+f.size]))
	}
	return block
}

func (f *rmaField) value(b []byte) any {
	if f.kind == octets {
		return fmt.Sprintf("%x", b)
	}
	v := uint64(0)
	for _, x := range b {
		v = v<<8 | uint64(x)
	}
	switch {
	case f.kind == number:
		return v
	case f.size == 4:
		return hex32(uint32(v))
	}
	return hex64(v)
}
