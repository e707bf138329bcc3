package mpa

import "encoding/binary"

// Markers (RFC 5044 section 4.3) are at every 512th octet of a direction, counted from
// the beginning of Full Operation, including the Markers themselves.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           RESERVED            |            FPDUPTR            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
const (
	markerPeriod = 512
	markerSize   = 4
	markerStride = markerPeriod - markerSize // octets between two Markers
	fpduPtrMask  = ^uint16(3)                // the low two bits are unused
)

// markerDue reports whether there is a Marker at pos.
func markerDue(pos uint64) bool { return pos%markerPeriod == 0 }

// putMarker appends the Marker at pos within the FPDU whose header is at header; for a
// Marker in front of a header, header == pos.
func putMarker(b []byte, header, pos uint64) []byte {
	b = append(b, 0, 0)
	return binary.BigEndian.AppendUint16(b, uint16(pos-header))
}

// pointer reads the FPDUPTR of the Marker at the beginning of b.
func pointer(b []byte) uint16 {
	return binary.BigEndian.Uint16(b[2:]) & fpduPtrMask
}

// withMarkers returns the size on the wire of an FPDU that has n octets without Markers
// and whose header is at header. It does not count a Marker in front of the header.
func withMarkers(header uint64, n int) int {
	room := markerPeriod - int(header%markerPeriod) // up to the next Marker
	if n <= room {
		return n
	}
	return n + markerSize*(1+(n-room-1)/markerStride)
}
