package wiretest

import "encoding/binary"

// The header of a set-up frame ends with the length of the private data.
const frameHeaderLen = 20

// FrameLen returns the length of the set-up frame at the beginning of b, 0 if it is not whole.
func FrameLen(b []byte) int {
	if len(b) < frameHeaderLen {
		return 0
	}
	return whole(b, frameHeaderLen+int(binary.BigEndian.Uint16(b[frameHeaderLen-2:])))
}

// FPDULen returns the length of the FPDU without Markers at the beginning of b, 0 if it is not whole.
func FPDULen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	n := 2 + int(binary.BigEndian.Uint16(b))
	return whole(b, n+-n&3+4)
}

func whole(b []byte, n int) int {
	if n > len(b) {
		return 0
	}
	return n
}

// ULPDU returns the segment in a whole FPDU.
func ULPDU(fpdu []byte) []byte { return fpdu[2:][:binary.BigEndian.Uint16(fpdu)] }
