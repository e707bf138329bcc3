package peer

import (
	"runtime"
	"runtime/debug"
)

// A Memory is what a process holds, in octets.
type Memory struct {
	RSS  uint64 `json:"rss"`  // resident now
	Peak uint64 `json:"peak"` // resident at most
}

// KeptMemory collects garbage, returns free memory to the system, and returns what is left.
func KeptMemory() Memory {
	runtime.GC() // empties the pools into their victims
	debug.FreeOSMemory()
	return ResidentMemory()
}
