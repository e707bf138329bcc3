//go:build race

package sctpudp

import (
	"runtime"
	"unsafe"
)

// network stands for all networks: what was sent happens before what is received.
// Package net does not tell the race detector so of UDP.
var network byte

func raceSend()    { runtime.RaceReleaseMerge(unsafe.Pointer(&network)) }
func raceReceive() { runtime.RaceAcquire(unsafe.Pointer(&network)) }
