package wire

import (
	"encoding/binary"
	"fmt"
)

// An Opcode is an RDMAP opcode (RFC 5040 section 4.1, RFC 7306 section 4).
type Opcode uint8

// The opcodes that are checked.
const (
	Write                   Opcode = 0
	ReadRequest             Opcode = 1
	Send                    Opcode = 3
	SendInvalidate          Opcode = 4
	SendSolicited           Opcode = 5
	SendSolicitedInvalidate Opcode = 6
	terminate               Opcode = 7
)

func (o Opcode) String() string {
	names := map[Opcode]string{
		Write: "Write", ReadRequest: "Read Request", Send: "Send", SendInvalidate: "Send with Invalidate",
		SendSolicited: "Send with Solicited Event", SendSolicitedInvalidate: "Send with Solicited Event and Invalidate",
		terminate: "Terminate",
	}
	if name, ok := names[o]; ok {
		return name
	}
	return fmt.Sprintf("opcode %d", uint8(o))
}

// A segment is what one FPDU carries.
type segment struct {
	op      Opcode
	tagged  bool
	last    bool   // of its message
	stag    uint32 // tagged
	queue   uint32 // untagged
	payload []byte // after the header of DDP
}

// readSegments parses all whole FPDUs. Without Markers an FPDU is (RFC 5044 section 4)
//
//	0    length of the ULPDU
//	2    ULPDU: a segment of DDP
//	     padding to a multiple of four octets
//	     CRC, which can have any value if it is not used
func readSegments(b []byte) ([]segment, error) {
	const length, crc = 2, 4
	var all []segment
	for len(b) >= length {
		n := int(binary.BigEndian.Uint16(b))
		whole := (length+n+3)/4*4 + crc
		if len(b) < whole {
			break
		}
		s, err := readSegment(b[length : length+n])
		if err != nil {
			return all, fmt.Errorf("FPDU %d: %w", len(all), err)
		}
		all = append(all, s)
		b = b[whole:]
	}
	return all, nil
}

// readSegment reads one segment of DDP (RFC 5041 sections 4.2 and 4.3):
//
//	0    T 0x80 (tagged), L 0x40 (last), version in the lowest two bits
//	1    version of RDMAP in the upper two bits, opcode in the lower four
//	tagged:   2 STag, 6 offset, 14 payload
//	untagged: 2 STag to invalidate, 6 queue, 10 MSN, 14 offset, 18 payload
func readSegment(b []byte) (s segment, err error) {
	const taggedHeader, untaggedHeader = 14, 18
	if len(b) < taggedHeader {
		return s, fmt.Errorf("segment of %d octets", len(b))
	}
	if ddp, rdmap := b[0]&0x03, b[1]>>6; ddp != 1 || rdmap != 1 {
		return s, fmt.Errorf("version %d of DDP, %d of RDMAP", ddp, rdmap)
	}
	s.tagged, s.last, s.op = b[0]&0x80 != 0, b[0]&0x40 != 0, Opcode(b[1]&0x0f)
	if s.tagged {
		s.stag, s.payload = binary.BigEndian.Uint32(b[2:]), b[taggedHeader:]
		return s, nil
	}
	if len(b) < untaggedHeader {
		return s, fmt.Errorf("untagged segment of %d octets", len(b))
	}
	s.queue, s.payload = binary.BigEndian.Uint32(b[6:]), b[untaggedHeader:]
	return s, nil
}

// A Terminate says why an end terminates a connection.
type Terminate struct{ Layer, Type, Code uint8 }

func (t Terminate) String() string { return fmt.Sprintf("%d/%d/%02x", t.Layer, t.Type, t.Code) }

// readTerminate reads Terminate Control (RFC 5040 section 4.8): the layer is in the upper four
// bits of the first octet, the type in the lower four; the code is the second octet.
func readTerminate(s segment) (t Terminate, err error) {
	const control, terminateQueue = 4, 2
	if s.tagged || s.queue != terminateQueue || len(s.payload) < control {
		return t, fmt.Errorf("a Terminate of %d octets (tagged: %v, queue %d)", len(s.payload), s.tagged, s.queue)
	}
	return Terminate{Layer: s.payload[0] >> 4, Type: s.payload[0] & 0x0f, Code: s.payload[1]}, nil
}

// readyToReceive reports whether a segment is a ready-to-receive message of a kind: a message of
// no octets (RFC 6581 section 9).
func readyToReceive(s segment, kind Opcode) bool {
	const readRequest, sendQueue, requestQueue = 28, 0, 1
	if s.op != kind || !s.last {
		return false
	}
	switch kind {
	case Write:
		return s.tagged && len(s.payload) == 0
	case ReadRequest: // sink STag 4, offset 8, size 4, source STag 4, offset 8
		return !s.tagged && s.queue == requestQueue && len(s.payload) == readRequest && binary.BigEndian.Uint32(s.payload[12:]) == 0
	case Send:
		return !s.tagged && s.queue == sendQueue && len(s.payload) == 0
	default:
		return false
	}
}
