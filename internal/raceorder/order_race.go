//go:build race

package raceorder

import (
	"runtime"
	"sync"
	"unsafe"
)

// Enabled reports whether the race detector is on.
const Enabled = true

var mu sync.Mutex

// Lock begins an access to memory that peers may share.
func Lock() { mu.Lock() }

// Unlock ends the access that Lock began.
func Unlock() { mu.Unlock() }

// network represents all networks whose sockets do not inform the race detector themselves.
var network byte

// Send tells the race detector that something is about to be sent: everything before Send
// happens before everything after the Receive at the other end.
func Send() { runtime.RaceReleaseMerge(unsafe.Pointer(&network)) }

// Receive tells the race detector that something was received.
func Receive() { runtime.RaceAcquire(unsafe.Pointer(&network)) }
