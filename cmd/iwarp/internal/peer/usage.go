package peer

import (
	"encoding/binary"
	"runtime"
	"time"
)

// A Usage is what a process has used since it began.
type Usage struct {
	CPU     time.Duration // in the program and in the system for it
	Mallocs uint64        // objects allocated
}

// Plus adds what another process has used.
func (u Usage) Plus(v Usage) Usage { return Usage{u.CPU + v.CPU, u.Mallocs + v.Mallocs} }

// Minus returns what was used since v.
func (u Usage) Minus(v Usage) Usage { return Usage{u.CPU - v.CPU, u.Mallocs - v.Mallocs} }

// UsageLen is the length of a Usage on a control connection. It has a fixed form, because a request for it must cost
// almost nothing and allocate nothing.
const UsageLen = 16

// Put writes u to b in that form.
func (u Usage) Put(b *[UsageLen]byte) {
	binary.BigEndian.PutUint64(b[:], uint64(u.CPU))
	binary.BigEndian.PutUint64(b[8:], u.Mallocs)
}

// UsageOf reads a Usage from b.
func UsageOf(b *[UsageLen]byte) Usage {
	return Usage{CPU: time.Duration(binary.BigEndian.Uint64(b[:])), Mallocs: binary.BigEndian.Uint64(b[8:])}
}

// A Meter reads the usage of this process and allocates nothing for it.
type Meter struct{ mem runtime.MemStats }

// Read returns the usage.
func (m *Meter) Read() Usage {
	runtime.ReadMemStats(&m.mem)
	return Usage{CPU: CPU(), Mallocs: m.mem.Mallocs}
}
