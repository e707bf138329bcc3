//go:build !linux

package peer

import (
	"math"
	"runtime"
)

// ResidentMemory returns what the runtime has obtained from the system, which is close to it.
func ResidentMemory() Memory {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Memory{RSS: m.Sys - m.HeapReleased, Peak: m.Sys}
}

// ForgetPeak does nothing here: the peak is that of the process.
func ForgetPeak() {}

// OpenFiles does nothing here: the runtime raises the limit itself, and dialing reports when it is
// reached.
func OpenFiles() uint64 { return math.MaxUint64 }

// RaiseFiles is the same as OpenFiles here.
func RaiseFiles(uint64) uint64 { return OpenFiles() }

// FilesBound does not know the bound here.
func FilesBound() string { return "the system bounds the files of a process" }
