package capsule

import (
	"encoding/binary"
	"math"
)

// dataUnit is the unit in which SMART counts data, in octets.
const dataUnit = 1000 * 512

// DataUnits converts octets to the unit of SMART, rounded up.
func DataUnits(octets uint64) uint64 {
	n := octets / dataUnit
	if octets%dataUnit != 0 {
		n++
	}
	return n
}

// SMART is the used part of the log page LogSMART (Base 2.0, 5.16.1.3), whose counters have 128 bits. A counter that
// exceeds 64 bits is parsed as the largest number of 64 bits.
//
//	 0 critical warning | 1 temperature, 16 bits | 3 available spare | 4 threshold | 5 percentage used
//	32 data units read | 48 written | 64 read commands | 80 write commands | 96 busy time | 112 power cycles
//	128 power on hours | 144 unsafe shutdowns | 160 media errors, 128 bits each
type SMART struct {
	CriticalWarning uint8
	Temperature     uint16 // K
	Spare           uint8  // percent
	SpareThreshold  uint8  // percent
	PercentageUsed  uint8
	UnitsRead       uint64 // see DataUnits
	UnitsWritten    uint64
	Reads           uint64 // commands
	Writes          uint64
	BusyMinutes     uint64
	PowerCycles     uint64
	PowerOnHours    uint64
	UnsafeShutdowns uint64
	MediaErrors     uint64
}

// Put writes the 512 octets of the log to b, which must be long enough.
func (l *SMART) Put(b []byte) {
	b = b[:SMARTSize]
	clear(b)
	b[0] = l.CriticalWarning
	binary.LittleEndian.PutUint16(b[1:], l.Temperature)
	b[3], b[4], b[5] = l.Spare, l.SpareThreshold, l.PercentageUsed
	for i, v := range [...]uint64{
		l.UnitsRead, l.UnitsWritten, l.Reads, l.Writes, l.BusyMinutes, l.PowerCycles, l.PowerOnHours,
		l.UnsafeShutdowns, l.MediaErrors,
	} {
		binary.LittleEndian.PutUint64(b[32+16*i:], v)
	}
}

// ParseSMART reads the log, of at least 512 octets.
func ParseSMART(b []byte) (SMART, error) {
	if len(b) < SMARTSize {
		return SMART{}, malformed("a SMART log of %d octets", len(b))
	}
	l := SMART{
		CriticalWarning: b[0],
		Temperature:     binary.LittleEndian.Uint16(b[1:]),
		Spare:           b[3],
		SpareThreshold:  b[4],
		PercentageUsed:  b[5],
	}
	for i, v := range [...]*uint64{
		&l.UnitsRead, &l.UnitsWritten, &l.Reads, &l.Writes, &l.BusyMinutes, &l.PowerCycles, &l.PowerOnHours,
		&l.UnsafeShutdowns, &l.MediaErrors,
	} {
		*v = uint128(b[32+16*i:])
	}
	return l, nil
}

// uint128 reads a counter, or returns the largest uint64 if it exceeds 64 bits.
func uint128(b []byte) uint64 {
	if binary.LittleEndian.Uint64(b[8:]) != 0 {
		return math.MaxUint64
	}
	return binary.LittleEndian.Uint64(b)
}
