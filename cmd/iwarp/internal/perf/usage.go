package perf

import (
	"encoding/binary"
	"runtime"
	"runtime/debug"
	"time"
)

// A usage is what a process has used since it began.
type usage struct {
	cpu     time.Duration // in the program and in the system for it
	mallocs uint64        // objects allocated
}

const usageLen = 16

func (u *usage) put(b *[usageLen]byte) {
	binary.BigEndian.PutUint64(b[:], uint64(u.cpu))
	binary.BigEndian.PutUint64(b[8:], u.mallocs)
}

func (u *usage) get(b *[usageLen]byte) {
	u.cpu = time.Duration(binary.BigEndian.Uint64(b[:]))
	u.mallocs = binary.BigEndian.Uint64(b[8:])
}

func (u usage) plus(v usage) usage  { return usage{u.cpu + v.cpu, u.mallocs + v.mallocs} }
func (u usage) minus(v usage) usage { return usage{u.cpu - v.cpu, u.mallocs - v.mallocs} }

// A meter reads the usage of this process and allocates nothing for it.
type meter struct{ mem runtime.MemStats }

func (m *meter) read() usage {
	runtime.ReadMemStats(&m.mem)
	return usage{cpu: processCPU(), mallocs: m.mem.Mallocs}
}

// A memory is what a process holds, in octets.
type memory struct {
	RSS  uint64 `json:"rss"`  // resident now
	Peak uint64 `json:"peak"` // resident at most
}

// ownMemory collects garbage, gives back what is free, and tells what is left.
func ownMemory() memory {
	runtime.GC() // empties the pools into their victims
	debug.FreeOSMemory()
	return residentMemory()
}
