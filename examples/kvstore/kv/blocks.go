package kv

import (
	"math/bits"
	"slices"
)

// blocks allocates the memory of values, in powers of two of blockUnit up to maxStored, with a buddy
// allocator. A block may also be allocated by number, as another replica has allocated it.
type blocks struct {
	state []uint8                // by unit: 1 + order of the free block that begins there, else 0
	free  [maxOrder + 1][]uint32 // free blocks by order, and some that are no longer free
	count [maxOrder + 1]int      // of free blocks by order
}

// mostStale is how many entries a list of free blocks may have beyond twice the number of free blocks.
const mostStale = 64

const maxOrder = 10 // of a block for maxStored octets

// orderOf returns the order of a block for n octets, at least one.
func orderOf(n int) int { return bits.Len(uint(n-1) / blockUnit) }

func newBlocks(octets uint64) *blocks {
	b := &blocks{state: make([]uint8, octets/blockUnit)}
	for at := len(b.state) - 1<<maxOrder; at >= 0; at -= 1 << maxOrder {
		b.push(uint32(at), maxOrder)
	}
	return b
}

func (b *blocks) isFree(at uint32, order int) bool { return b.state[at] == uint8(order+1) }

func (b *blocks) push(at uint32, order int) {
	b.state[at] = uint8(order + 1)
	b.count[order]++
	b.free[order] = append(b.free[order], at)
	if len(b.free[order]) > 2*b.count[order]+mostStale { // at a backup nothing else shortens the list
		slices.Sort(b.free[order])
		b.free[order] = slices.DeleteFunc(slices.Compact(b.free[order]), func(at uint32) bool { return !b.isFree(at, order) })
	}
}

// leave marks a free block as no longer free.
func (b *blocks) leave(at uint32, order int) {
	b.state[at] = 0
	b.count[order]--
}

// pop takes a free block of exactly that order.
func (b *blocks) pop(order int) (at uint32, ok bool) {
	for n := len(b.free[order]); n > 0 && !ok; n-- {
		at = b.free[order][n-1]
		b.free[order] = b.free[order][:n-1]
		ok = b.isFree(at, order)
	}
	if ok {
		b.leave(at, order)
	}
	return at, ok
}

// alloc allocates a block of that order. It reports false if there is none.
func (b *blocks) alloc(order int) (at uint32, ok bool) {
	for o := order; o <= maxOrder; o++ {
		if at, ok = b.pop(o); !ok {
			continue
		}
		for o > order {
			o--
			b.push(at+1<<o, o)
		}
		return at, true
	}
	return 0, false
}

// take allocates the block of that number. It reports false if it is not free, or not a block.
func (b *blocks) take(at uint32, order int) bool {
	if uint64(at)+1<<order > uint64(len(b.state)) || at&(1<<order-1) != 0 {
		return false
	}
	for o := order; o <= maxOrder; o++ {
		base := at &^ (1<<o - 1)
		if !b.isFree(base, o) {
			continue
		}
		b.leave(base, o)
		for o > order {
			o--
			if at&(1<<o) != 0 {
				b.push(base, o)
				base += 1 << o
			} else {
				b.push(base+1<<o, o)
			}
		}
		return true
	}
	return false
}

// give frees a block.
func (b *blocks) give(at uint32, order int) {
	for order < maxOrder {
		buddy := at ^ 1<<order
		if !b.isFree(buddy, order) {
			break
		}
		b.leave(buddy, order)
		at &^= 1 << order
		order++
	}
	b.push(at, order)
}
