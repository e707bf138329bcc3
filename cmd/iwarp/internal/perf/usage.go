package perf

import (
	"encoding/binary"
	"runtime"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
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
	return usage{cpu: peer.CPU(), mallocs: m.mem.Mallocs}
}
