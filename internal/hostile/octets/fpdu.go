package octets

import (
	"encoding/binary"
	"hash/crc32"
)

// FPDU frames a ULPDU (RFC 5044 section 4).
func FPDU(ulpdu []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(ulpdu)))
	b = append(b, ulpdu...)
	b = append(b, make([]byte, -len(b)&3)...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// Marked frames a ULPDU with Markers; pos is the position of the FPDU in the stream. bend may falsify
// the FPDUPTR of a Marker.
func Marked(pos int, ulpdu []byte, bend func(ptr uint16) uint16) []byte {
	plain := FPDU(ulpdu)
	var out []byte
	header := -1
	put := func(octets []byte) {
		for _, b := range octets {
			if (pos+len(out))%512 == 0 {
				ptr := uint16(0)
				if header >= 0 {
					ptr = uint16(len(out) - header)
				}
				out = binary.BigEndian.AppendUint32(out, uint32(bend(ptr)))
			}
			if header < 0 {
				header = len(out)
			}
			out = append(out, b)
		}
	}
	put(plain[:len(plain)-4])
	crc := crc32.Checksum(out, crc32.MakeTable(crc32.Castagnoli))
	put(binary.LittleEndian.AppendUint32(nil, crc))
	return out
}
