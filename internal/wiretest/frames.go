package wiretest

import "encoding/binary"

// Where the lengths are in a frame of the set-up.
const frameHeaderLen = 20

// FrameLen is how long the frame of the set-up is that b begins with: 0 if it is not whole.
func FrameLen(b []byte) int {
	if len(b) < frameHeaderLen {
		return 0
	}
	return whole(b, frameHeaderLen+int(binary.BigEndian.Uint16(b[frameHeaderLen-2:])))
}

// FPDULen is how long the FPDU without Markers is that b begins with: 0 if it is not whole.
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

// ULPDU is the segment of an FPDU that is whole.
func ULPDU(fpdu []byte) []byte { return fpdu[2:][:binary.BigEndian.Uint16(fpdu)] }
