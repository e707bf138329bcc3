package main

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

const (
	slots      = 64 // runs that are under way at once
	blockWords = 64
	wordLen    = 8
	blockLen   = blockWords * wordLen
	maxOps     = 16 // of a program
)

// Each word in memory tells by its value which run has written it, and what: nothing needs to
// be cleared between two runs, and what an earlier run has left counts as 0.
func word(run, value uint64) uint64 { return run<<valueBits | value }

// valueOf returns the value in a word.
func valueOf(v, run uint64) uint8 {
	if v>>valueBits != run {
		return 0
	}
	return uint8(v & torn)
}

// valueIn returns the value of a block.
func valueIn(block []uint64, run uint64) uint8 {
	first := valueOf(block[0], run)
	for _, v := range block[1:] {
		if valueOf(v, run) != first {
			return torn
		}
	}
	return first
}

// area is memory as words, and as octets.
type area struct {
	words  []uint64
	octets []byte
}

func newArea(blocks int) area {
	words := make([]uint64, blocks*blockWords)
	return area{words, unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*wordLen)}
}

// block is the number of the block of a variable, or of an operation, in a slot.
func block(i, slot int) int { return i*slots + slot }

func (a *area) block(n, words int) []uint64 { return a.words[n*blockWords:][:words] }

// integer is where atomic operations of the peer change a word.
func (a *area) integer(n int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&a.words[n*blockWords]))
}

// fill stores one word throughout a block.
func fill(block []uint64, v uint64) {
	for i := range block {
		block[i] = v
	}
}

// A disk is a Buffer whose octets are durable after a Flush.
type disk struct {
	mu     sync.Mutex
	cache  []byte
	stable []byte
}

func newDisk() *disk {
	return &disk{cache: make([]byte, 2*slots*blockLen), stable: make([]byte, 2*slots*blockLen)}
}

// diskOffset is where a variable of a slot is.
func diskOffset(v variable, slot int) int { return block(int(v-p), slot) * blockLen }

func (k *disk) Size() int64 { return int64(len(k.cache)) }

func (k *disk) ReadAt(b []byte, off int64) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return copy(b, k.cache[off:]), nil
}

func (k *disk) WriteAt(b []byte, off int64) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return copy(k.cache[off:], b), nil
}

// Flush takes a moment before anything is durable.
func (k *disk) Flush(_ context.Context, off, n int64) error {
	for range 1 + off/blockLen%8 {
		runtime.Gosched()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	copy(k.stable[off:off+n], k.cache[off:])
	return nil
}

// durable returns the value that a block would have after a power failure.
func (k *disk) durable(v variable, slot, words int, run uint64) uint8 {
	k.mu.Lock()
	defer k.mu.Unlock()
	stable := k.stable[diskOffset(v, slot):]
	first := valueOf(binary.NativeEndian.Uint64(stable), run)
	if v.integer() {
		return first
	}
	for i := range words {
		if valueOf(binary.NativeEndian.Uint64(stable[i*wordLen:]), run) != first {
			return torn
		}
	}
	return first
}

// A slowBuffer delays each placement into it, and each reading from it, so that operations on it
// delay others at random places.
type slowBuffer struct{ turns atomic.Uint32 }

var errTooLong = errors.New("too many octets")

func (b *slowBuffer) Size() int64 { return blockLen }

func (b *slowBuffer) ReadAt(p []byte, _ int64) (int, error) {
	b.delay()
	return len(p), nil
}

func (b *slowBuffer) WriteAt(p []byte, _ int64) (int, error) {
	if len(p) > blockLen {
		return 0, errTooLong
	}
	b.delay()
	return len(p), nil
}

// delay gives the processor away some times.
func (b *slowBuffer) delay() {
	n := b.turns.Add(1)
	if n %= 32; n == 0 {
		n = 200
	}
	for range n {
		runtime.Gosched()
	}
}
