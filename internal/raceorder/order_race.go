//go:build race

package raceorder

import "sync"

var mu sync.Mutex

// Lock begins an access to memory that peers may share.
func Lock() { mu.Lock() }

// Unlock ends it.
func Unlock() { mu.Unlock() }
