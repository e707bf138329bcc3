package attack

import "github.com/goiwarp/iwarp/internal/hostile/octets"

// fpdu sends good segments, and bends the FPDUs that contain them: lengths, padding, CRCs.
func fpdu(d dice, at Target) talk {
	t := talk{opening: opens(d, nil)}
	for _, s := range segments(d, at, 1+d.IntN(16)) {
		if d.one(12) { // Markers that were not requested
			t.messages = append(t.messages, octets.Marked(0, s, func(ptr uint16) uint16 { return ptr }))
			continue
		}
		t.messages = append(t.messages, octets.FPDU(s))
	}
	return t
}
