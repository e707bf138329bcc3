//go:build race

package crc32c

import (
	"runtime"
	"unsafe"
)

// raceRead tells the race detector, which does not see into assembly, that p is
// read.
func raceRead(p []byte) {
	if len(p) > 0 {
		runtime.RaceReadRange(unsafe.Pointer(unsafe.SliceData(p)), len(p))
	}
}

// raceWrite tells the race detector that p is written.
func raceWrite(p []byte) {
	if len(p) > 0 {
		runtime.RaceWriteRange(unsafe.Pointer(unsafe.SliceData(p)), len(p))
	}
}
