package peer

import (
	"runtime"
	"time"
)

// A Usage is what a process has used since it began.
type Usage struct {
	CPU     time.Duration `json:"cpu"`     // in the program and in the system for it
	Mallocs uint64        `json:"mallocs"` // objects allocated
}

// Plus adds what another process has used.
func (u Usage) Plus(v Usage) Usage { return Usage{u.CPU + v.CPU, u.Mallocs + v.Mallocs} }

// Minus is what was used since v.
func (u Usage) Minus(v Usage) Usage { return Usage{u.CPU - v.CPU, u.Mallocs - v.Mallocs} }

// A Meter reads the usage of this process and allocates nothing for it.
type Meter struct{ mem runtime.MemStats }

// Read returns the usage.
func (m *Meter) Read() Usage {
	runtime.ReadMemStats(&m.mem)
	return Usage{CPU: CPU(), Mallocs: m.mem.Mallocs}
}
