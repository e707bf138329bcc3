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
	mostSlots = 64
	wordLen   = 8
	maxOps    = 16  // of a program
	inlineLen = 512 // of SendWR.Inline at most
	slowLen   = wordLen
)

// A geometry says how many runs are concurrent at most, and how long their blocks are at most.
type geometry struct{ slots, words int }

// Small blocks have a few segments. Large blocks are long enough that a TCP connection reads them
// directly into the sink of a Read.
var (
	small = geometry{slots: mostSlots, words: 64}
	large = geometry{slots: 8, words: 2048}
)

// offset is where the block of a variable, or of an operation, in a slot begins, in words.
func (g geometry) offset(i, slot int) int { return (i*g.slots + slot) * g.words }

// octets returns the offset in octets.
func (g geometry) octets(i, slot int) int { return g.offset(i, slot) * wordLen }

func (g geometry) blockLen() int { return g.words * wordLen }

// word returns the word for a value that a run writes. Since each word in memory names its run,
// memory needs no clearing between two runs, and a word of an earlier run counts as 0.
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
	geometry
	memory []uint64
	bytes  []byte
}

// newArea makes an area for the blocks of n variables, or operations.
func newArea(g geometry, n int) area {
	words := make([]uint64, g.offset(n, 0))
	return area{g, words, unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*wordLen)}
}

// block returns the first words of a block.
func (a *area) block(i, slot, words int) []uint64 { return a.memory[a.offset(i, slot):][:words] }

// integer returns the word that atomic operations of the peer change.
func (a *area) integer(v variable, slot int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&a.memory[a.offset(int(v), slot)]))
}

// fill stores one word throughout a block.
func fill(block []uint64, v uint64) {
	for i := range block {
		block[i] = v
	}
}

// A disk is a Buffer whose octets are durable after a Flush.
type disk struct {
	geometry
	mu     sync.Mutex
	cache  []byte
	stable []byte
}

func newDisk(g geometry) *disk {
	size := g.octets(int(e-p)+1, 0)
	return &disk{geometry: g, cache: make([]byte, size), stable: make([]byte, size)}
}

// place returns the offset of a variable of a slot.
func (k *disk) place(v variable, slot int) int { return k.octets(int(v-p), slot) }

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

// Flush takes some time before it makes anything durable.
func (k *disk) Flush(_ context.Context, off, n int64) error {
	for range 1 + off/int64(k.blockLen())%8 {
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
	stable := k.stable[k.place(v, slot):]
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

func (b *slowBuffer) Size() int64 { return slowLen }

func (b *slowBuffer) ReadAt(p []byte, _ int64) (int, error) {
	b.delay()
	return len(p), nil
}

func (b *slowBuffer) WriteAt(p []byte, _ int64) (int, error) {
	if len(p) > slowLen {
		return 0, errTooLong
	}
	b.delay()
	return len(p), nil
}

// delay yields the processor a few times.
func (b *slowBuffer) delay() {
	n := b.turns.Add(1)
	if n %= 32; n == 0 {
		n = 200
	}
	for range n {
		runtime.Gosched()
	}
}
