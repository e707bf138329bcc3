package mpa

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The sizes of a start-up frame (RFC 5044 section 7.1.1).
const (
	HeaderSize         = 20  // a frame without its private data
	MaxPrivateDataSize = 512 // the most octets that can follow the header
	keySize            = 16
)

// The revisions of MPA.
const (
	Revision1 = 1 // RFC 5044
	Revision2 = 2 // RFC 6581
)

const (
	requestKey = "MPA ID Req Frame"
	replyKey   = "MPA ID Rep Frame"
)

const (
	flagMarkers  = 0x80
	flagCRC      = 0x40
	flagReject   = 0x20
	flagEnhanced = 0x10
)

// A Frame is an MPA Request or Reply frame (RFC 5044 section 7.1.1, RFC 6581
// section 6).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|          Key (16 octets): "MPA ID Req Frame" or               |
//	|                           "MPA ID Rep Frame"                  |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|M|C|R|S|  Res  |     Rev       |          PD_Length            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	~                   Private Data (PD_Length octets)             ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Frame struct {
	Markers  bool // M: the sender wants to receive Markers
	CRC      bool // C: the sender wants CRCs
	Reject   bool // R: the connection is refused; means nothing in a Request
	Enhanced bool // S: the private data begins with enhanced data; from revision 2 on
	Revision uint8
	// PrivateData is at most MaxPrivateDataSize octets, enhanced data included.
	PrivateData []byte
}

// AppendRequest appends the frame as a Request. R is sent as 0.
func (f *Frame) AppendRequest(b []byte) []byte {
	return f.append(b, requestKey, f.flags()&^flagReject)
}

// AppendReply appends the frame as a Reply.
func (f *Frame) AppendReply(b []byte) []byte {
	return f.append(b, replyKey, f.flags())
}

func (f *Frame) append(b []byte, key string, flags byte) []byte {
	b = append(slices.Grow(b, HeaderSize+len(f.PrivateData)), key...)
	b = append(b, flags, f.Revision)
	b = binary.BigEndian.AppendUint16(b, uint16(len(f.PrivateData)))
	return append(b, f.PrivateData...)
}

func (f *Frame) flags() (b byte) {
	if f.Markers {
		b |= flagMarkers
	}
	if f.CRC {
		b |= flagCRC
	}
	if f.Reject {
		b |= flagReject
	}
	if f.Enhanced {
		b |= flagEnhanced
	}
	return b
}

var (
	errRole = errors.New("a Request where a Reply is due: both ends are initiators")
	errKey  = errors.New("not an MPA frame")
)

// ErrTLS is wrapped by the error of a set-up whose peer has sent TLS instead of a frame: a
// handshake, or an alert in answer to something that is not a handshake.
var ErrTLS = errors.New("the peer uses TLS, and this side does not")

// isTLS reports whether b begins like a TLS record: an alert or a handshake, version 3.
func isTLS(b []byte) bool { return len(b) > 2 && maybeTLS(b) }

// maybeTLS is isTLS for a record of which only a part may have arrived.
func maybeTLS(b []byte) bool {
	const alert, handshake, major = 21, 22, 3
	return (len(b) == 0 || b[0] == alert || b[0] == handshake) && (len(b) < 2 || b[1] == major)
}

// begins checks that a frame may begin with b, which has fewer octets than a header. If not, the error says what b is.
func begins(b []byte) error {
	unclear := !isTLS(b) && maybeTLS(b)
	b = b[:min(len(b), keySize)]
	if unclear || strings.HasPrefix(requestKey, string(b)) || strings.HasPrefix(replyKey, string(b)) {
		return nil
	}
	return noFrame(b)
}

// noFrame returns the error for octets that are not the beginning of the expected frame.
func noFrame(b []byte) error {
	if isTLS(b) {
		return ErrTLS
	}
	return fmt.Errorf("%w: it begins with %q", errKey, b[:min(len(b), keySize)])
}

// ParseRequestHeader reads the header of a Request, and returns how many octets of
// private data follow it. R and the reserved bits are ignored.
func ParseRequestHeader(b []byte) (Frame, int, error) {
	f, n, err := parseHeader(b, requestKey)
	f.Reject = false
	return f, n, err
}

// ParseReplyHeader reads the header of a Reply, and returns how many octets of
// private data follow it. The reserved bits are ignored.
func ParseReplyHeader(b []byte) (Frame, int, error) {
	return parseHeader(b, replyKey)
}

func parseHeader(b []byte, key string) (Frame, int, error) {
	if len(b) < HeaderSize {
		return Frame{}, 0, fmt.Errorf("frame header of %d octets, want %d", len(b), HeaderSize)
	}
	if got := string(b[:keySize]); got != key {
		if key == replyKey && got == requestKey {
			return Frame{}, 0, errRole
		}
		return Frame{}, 0, noFrame(b)
	}
	flags := b[keySize]
	f := Frame{
		Markers:  flags&flagMarkers != 0,
		CRC:      flags&flagCRC != 0,
		Reject:   flags&flagReject != 0,
		Revision: b[keySize+1],
	}
	if f.Revision != Revision1 && f.Revision != Revision2 {
		return Frame{}, 0, fmt.Errorf("revision %d is not supported", f.Revision)
	}
	// In RFC 5044 the S bit is one of the reserved ones.
	f.Enhanced = f.Revision >= Revision2 && flags&flagEnhanced != 0
	n := int(binary.BigEndian.Uint16(b[keySize+2:]))
	if n > MaxPrivateDataSize {
		return Frame{}, 0, fmt.Errorf("%d octets of private data, at most %d are legal", n, MaxPrivateDataSize)
	}
	return f, n, nil
}
