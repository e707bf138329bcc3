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
	reports    []byte // the unknown parameters of the peer that must be reported, as parameters
}

const (
	initSize   = 16
	minWindow  = 1500
	paramSize  = 4 // type and length
	maxStreams = 1024

	paramCookie       = 7
	paramUnrecognized = 8
	paramHostname     = 11
	paramAddressTypes = 12 // the last one of RFC 9260
	paramZeroChecksum = 0x8001
	paramAdaptation   = 0xc006 // RFC 5061 section 4.2.6
	// How to handle an unknown parameter (RFC 9260 section 3.2.1).
	paramSkip   = 0x8000 // clear: everything after it is ignored
	paramReport = 0x4000
	// maxReports bounds what is reported: an INIT ACK must fit any path.
	maxReports = 1024
)

var errInit = errors.New("sctp: malformed INIT")

// parseInit reads the value of an INIT or INIT ACK. It skips parameters that mean nothing
// here, above all the addresses and extensions that a kernel announces. If the value is
// malformed, it returns the tag, or 0 if there is none.
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
		n := int(binary.BigEndian.Uint16(b[2:]))
		if n < paramSize || n > len(b) {
			return i, errInit
		}
		if more, err := i.take(b[:n]); !more {
			return i, err
		}
		b = b[min(pad(n), len(b)):]
	}
	return i, nil
}

// take processes a parameter. It reports false if everything after it is ignored.
func (i *initiation) take(param []byte) (more bool, err error) {
	switch kind, value := binary.BigEndian.Uint16(param), param[paramSize:]; {
	case kind == paramHostname: // not allowed (RFC 9260 section 5.1.2)
		return false, errInit
	case kind == paramAdaptation:
		if len(value) == 4 {
			i.adaptation = binary.BigEndian.Uint32(value)
		}
	case kind == paramCookie:
		i.cookie = value
	case kind > paramAddressTypes:
		if kind&paramReport != 0 {
			i.report(param)
		}
		return kind&paramSkip != 0, nil
	}
	return true, nil
}

// report makes the answer report an unknown parameter, if there is room (RFC 9260 section 3.2.2).
func (i *initiation) report(param []byte) {
	if pad(len(i.reports))+paramSize+len(param) <= maxReports {
		i.reports = appendParam(i.reports, paramUnrecognized, param)
	}
}

// appendParam appends a parameter, after the padding of the previous one. The padding of the last parameter is the
// padding of the chunk.
func appendParam(b []byte, kind uint16, value []byte) []byte {
	b = append(b, make([]byte, pad(len(b))-len(b))...)
	b = binary.BigEndian.AppendUint16(b, kind)
	b = binary.BigEndian.AppendUint16(b, uint16(paramSize+len(value)))
	return append(b, value...)
}

// append appends the value of the chunk, with the indication of DDP.
func (i *initiation) append(b []byte) []byte {
	b = i.appendFixed(b)
	b = binary.BigEndian.AppendUint16(b, paramAdaptation)
	b = binary.BigEndian.AppendUint16(b, paramSize+4)
	b = binary.BigEndian.AppendUint32(b, sctp.Adaptation)
	b = append(b, i.reports...)
	if i.cookie != nil {
		b = appendParam(b, paramCookie, i.cookie)
	}
	return b
}

func (i *initiation) appendFixed(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, i.tag)
	b = binary.BigEndian.AppendUint32(b, i.window)
	b = binary.BigEndian.AppendUint16(b, i.outbound)
	b = binary.BigEndian.AppendUint16(b, i.inbound)
	return binary.BigEndian.AppendUint32(b, i.tsn)
}

// token returns the INIT chunk that pion receives. Its only extension allows zero checksums
// (RFC 9653): this package checks the checksum of a packet before pion sees it, and computes
// the checksum of a packet that pion sends. pion would do both a second time.
func (i *initiation) token() []byte {
	b := i.appendFixed(nil)
	b = binary.BigEndian.AppendUint16(b, paramZeroChecksum)
	b = binary.BigEndian.AppendUint16(b, paramSize+4)
	b = binary.BigEndian.AppendUint32(b, 1) // by the method of DTLS, which this package replaces
	return appendChunk(nil, chunkInit, 0, b)
}

// streams returns how many pairs both ends can use. RFC 5043 section 8 requires as many
// outbound streams as inbound ones.
func streams(ours, theirs *initiation) int {
	return int(min(ours.outbound, ours.inbound, theirs.outbound, theirs.inbound))
}
