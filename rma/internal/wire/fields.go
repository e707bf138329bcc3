package wire

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/goiwarp/iwarp/regionkey"
)

// dataCtrEnd is above all numbers of sealed data.
const dataCtrEnd = 1 << 48

// putCount writes a duration in units, limited to the greatest number that fits.
func putCount(b []byte, d, unit time.Duration) {
	n := min(max(0, d/unit), math.MaxUint32)
	binary.BigEndian.PutUint32(b, uint32(n))
}

// count reads a duration in units.
func count(b []byte, unit time.Duration) time.Duration {
	return time.Duration(binary.BigEndian.Uint32(b)) * unit
}

// epoch reads an epoch. The first one is 1.
func epoch(b []byte) (regionkey.Epoch, error) {
	e := regionkey.Epoch(binary.BigEndian.Uint32(b))
	if e == 0 {
		return 0, malformed("epoch 0")
	}
	return e, nil
}

// dataCtr reads the number of sealed data.
func dataCtr(b []byte) (uint64, error) {
	n := binary.BigEndian.Uint64(b)
	if n >= dataCtrEnd {
		return 0, malformed("data with the number %d", n)
	}
	return n, nil
}

// inRange checks a duration.
func inRange(what string, d, least, most time.Duration) error {
	if d < least || d > most {
		return malformed("%s of %v, where %v to %v are possible", what, d, least, most)
	}
	return nil
}
