package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The keys of the two startup frames (RFC 5044 section 7.1.1).
const (
	requestKey = "MPA ID Req Frame"
	replyKey   = "MPA ID Rep Frame"
)

// errCut: the octets end in the middle of a frame.
var errCut = errors.New("the octets end within a frame")

// A startup is a Request or a Reply.
type startup struct {
	reject     bool
	peerToPeer bool     // A: the first FPDU is a ready-to-receive message
	rtr        []Opcode // the kinds of ready-to-receive message that the frame names
}

// readStartup reads the startup frame at the beginning of b, and returns the rest of b. The
// octets of a frame (RFC 5044 section 7.1.1, RFC 6581 sections 6 and 9):
//
//	0    key
//	16   flags: M 0x80, C 0x40, R 0x20 (rejected), S 0x10 (enhanced data follows)
//	17   revision
//	18   length of the private data
//	20   private data; with S its first four octets are A 0x8000, B 0x4000 (Send), IRD, and
//	     C 0x8000 (RDMA Write), D 0x4000 (RDMA Read), ORD
func readStartup(b []byte, key string) (f startup, rest []byte, err error) {
	const header, enhanced = 20, 4
	if len(b) < header {
		return f, nil, errCut
	}
	if string(b[:len(key)]) != key {
		return f, nil, fmt.Errorf("%q in place of %q", b[:len(key)], key)
	}
	flags, revision, size := b[16], b[17], int(binary.BigEndian.Uint16(b[18:]))
	if len(b) < header+size {
		return f, nil, errCut
	}
	private, rest := b[header:header+size], b[header+size:]
	f.reject = flags&0x20 != 0
	if revision < 2 || flags&0x10 == 0 {
		return f, rest, nil
	}
	if size < enhanced {
		return f, nil, fmt.Errorf("enhanced data of %d octets", size)
	}
	if f.peerToPeer = private[0]&0x80 != 0; f.peerToPeer {
		f.rtr = named(private)
	}
	return f, rest, nil
}

// named lists the kinds of ready-to-receive message that enhanced data names.
func named(enhanced []byte) (kinds []Opcode) {
	if enhanced[0]&0x40 != 0 {
		kinds = append(kinds, Send)
	}
	if enhanced[2]&0x80 != 0 {
		kinds = append(kinds, Write)
	}
	if enhanced[2]&0x40 != 0 {
		kinds = append(kinds, ReadRequest)
	}
	return kinds
}
