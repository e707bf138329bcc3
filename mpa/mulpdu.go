package mpa

// MULPDU is the size in octets of the largest ULPDU that MPA should be handed
// (RFC 5044 section 3).
type MULPDU int

// The range of a MULPDU (RFC 5044 section 4.5).
const (
	MinMULPDU MULPDU = 128
	MaxMULPDU MULPDU = 64768
)

// streamMULPDU is the MULPDU of a stream without TCP segments to fit.
const streamMULPDU MULPDU = 32 << 10

// MULPDUFor returns the size of the largest ULPDU whose FPDU fits in one TCP segment of
// emss octets wherever the Markers fall, within MinMULPDU and MaxMULPDU. It is 32 KiB for an
// emss of 0, which is unknown or has no meaning, as for a stream over TLS.
func MULPDUFor(emss int, markers bool) MULPDU {
	if emss <= 0 {
		return streamMULPDU
	}
	overhead := 6 + emss%4
	if markers {
		overhead += markerSize * ((emss + markerPeriod - 1) / markerPeriod)
	}
	return min(max(MULPDU(emss-overhead), MinMULPDU), MaxMULPDU)
}
