package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// A stamp describes a written block in its first octets. The other octets are derived from it, so
// that no two blocks are equal, nor two versions of a block.
type stamp struct {
	seed, block uint64 // of the run; the number of the block in the namespace
	generation  uint64 // of the block: each write of it has its own, from 1 on
}

const stampLen = 24

// fill makes the octets of a block.
func (s stamp) fill(p []byte) {
	binary.LittleEndian.PutUint64(p, s.seed)
	binary.LittleEndian.PutUint64(p[8:], s.block)
	binary.LittleEndian.PutUint64(p[16:], s.generation)
	state := s.seed ^ s.block*0x9E3779B97F4A7C15 ^ s.generation*0xD1342543DE82EF95
	for p = p[stampLen:]; len(p) >= 8; p = p[8:] { // SplitMix64
		state += 0x9E3779B97F4A7C15
		z := (state ^ state>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		binary.LittleEndian.PutUint64(p, z^z>>31)
	}
}

// check returns how a block differs from its expected contents. want is memory for a block.
func (s stamp) check(got, want []byte) error {
	s.fill(want)
	if bytes.Equal(got, want) {
		return nil
	}
	at := 0
	for got[at] == want[at] {
		at++
	}
	have := stamp{binary.LittleEndian.Uint64(got), binary.LittleEndian.Uint64(got[8:]), binary.LittleEndian.Uint64(got[16:])}
	have.fill(want)
	switch {
	case !bytes.Equal(got, want):
		return fmt.Errorf("octet %d of the block is not that of generation %d, nor is it another one as a whole", at, s.generation)
	case have.seed != s.seed:
		return fmt.Errorf("the block is of seed %d instead of %d", have.seed, s.seed)
	case have.block != s.block:
		return fmt.Errorf("the block is block %d instead of %d", have.block, s.block)
	}
	return fmt.Errorf("the block is of generation %d instead of %d", have.generation, s.generation)
}
