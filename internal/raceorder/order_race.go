//go:build race

package raceorder

import (
	"runtime"
	"sync"
	"unsafe"
)

// Enabled tells whether the race detector is on.
const Enabled = true

var mu sync.Mutex

// Lock begins an access to memory that peers may share.
func Lock() { mu.Lock() }

// Unlock ends it.
func Unlock() { mu.Unlock() }

// network stands for all networks whose sockets do not tell the race detector themselves.
var network byte

// Send says that something is about to be sent: all of it happened before what follows
// the Receive at its other end.
func Send() { runtime.RaceReleaseMerge(unsafe.Pointer(&network)) }

// Receive says that something was received.
func Receive() { runtime.RaceAcquire(unsafe.Pointer(&network)) }
