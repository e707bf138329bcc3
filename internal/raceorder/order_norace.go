//go:build !race

package raceorder

// Enabled reports whether the race detector is on.
const Enabled = false

// Lock does nothing without the race detector.
func Lock() {}

// Unlock does nothing without the race detector.
func Unlock() {}

// Send does nothing without the race detector.
func Send() {}

// Receive does nothing without the race detector.
func Receive() {}
