package sctpudp

import (
	"encoding/binary"
	"errors"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// An initiation is the content of an INIT or INIT ACK (RFC 9260 sections 3.3.2 and
// 3.3.3).
type initiation struct {
	tag      uint32
	window   uint32 // a_rwnd
	outbound uint16
	inbound  uint16
	tsn      uint32

	adaptation uint32 // 0: none
	cookie     []byte // of an INIT ACK
}

const (
	initSize   = 16
	minWindow  = 1500
	paramSize  = 4 // type and length
	maxStreams = 1024

	paramCookie       = 7
	paramHostname     = 11
	paramZeroChecksum = 0x8001
	paramAdaptation   = 0xc006 // RFC 5061 section 4.2.6
	paramStop         = 0x8000 // clear: nothing after an unknown parameter counts
)

var errInit = errors.New("sctp: malformed INIT")

// parseInit reads the value of an INIT or INIT ACK. Parameters that mean nothing here are
// skipped: the addresses and extensions that a kernel tells of, above all. Of a malformed
// one the tag is returned, 0 if there is none.
func parseInit(b []byte) (initiation, error) {
	if len(b) < initSize {
		return initiation{}, errInit
	}
	i := initiation{
		tag:      binary.BigEndian.Uint32(b),
		window:   binary.BigEndian.Uint32(b[4:]),
		outbound: binary.BigEndian.Uint16(b[8:]),
		inbound:  binary.BigEndian.Uint16(b[10:]),
		tsn:      binary.BigEndian.Uint32(b[12:]),
	}
	if i.tag == 0 || i.outbound == 0 || i.inbound == 0 || i.window < minWindow {
		return i, errInit
	}
	for b = b[initSize:]; len(b) >= paramSize; {
		kind, n := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		if n < paramSize || n > len(b) {
			return i, errInit
		}
		switch value := b[paramSize:n]; {
		case kind == paramAdaptation && len(value) == 4:
			i.adaptation = binary.BigEndian.Uint32(value)
		case kind == paramCookie:
			i.cookie = value
		case kind == paramHostname, kind > 12 && kind&paramStop == 0:
			return i, nil
		}
		b = b[min(pad(n), len(b)):]
	}
	return i, nil
}

// append appends the value of the chunk, with the indication of DDP.
func (i *initiation) append(b []byte) []byte {
	b = i.appendFixed(b)
	b = binary.BigEndian.AppendUint16(b, paramAdaptation)
	b = binary.BigEndian.AppendUint16(b, paramSize+4)
	b = binary.BigEndian.AppendUint32(b, sctp.Adaptation)
	if i.cookie == nil {
		return b
	}
	b = binary.BigEndian.AppendUint16(b, paramCookie)
	b = binary.BigEndian.AppendUint16(b, uint16(paramSize+len(i.cookie)))
	return append(b, i.cookie...)
}

func (i *initiation) appendFixed(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, i.tag)
	b = binary.BigEndian.AppendUint32(b, i.window)
	b = binary.BigEndian.AppendUint16(b, i.outbound)
	b = binary.BigEndian.AppendUint16(b, i.inbound)
	return binary.BigEndian.AppendUint32(b, i.tsn)
}

// token is the INIT chunk that pion is told of. Its only extension is that of doing
// without checksums (RFC 9653): the guard has checked that of a packet before pion sees
// it, and makes that of a packet which pion sends. It would be made and checked twice.
func (i *initiation) token() []byte {
	b := i.appendFixed(nil)
	b = binary.BigEndian.AppendUint16(b, paramZeroChecksum)
	b = binary.BigEndian.AppendUint16(b, paramSize+4)
	b = binary.BigEndian.AppendUint32(b, 1) // by the method of DTLS, whose place the guard has
	return appendChunk(nil, chunkInit, 0, b)
}

// streams is how many pairs both ends can use. RFC 5043 section 8 wants as many outbound
// ones as inbound ones.
func streams(ours, theirs *initiation) int {
	return int(min(ours.outbound, ours.inbound, theirs.outbound, theirs.inbound))
}
