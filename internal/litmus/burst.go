package main

import "math/rand/v2"

// A burst is a number of concurrent runs of a program, each in its slot.
type burst struct {
	*compiled
	n     int
	first uint64 // number of the run in slot 0
	words int    // length of all blocks

	phases   [][][]step   // by thread: what it posts, up to each of its waits
	messages [ends][]step // by end: the messages that it sends, in order
	values   [mostSlots][maxValues]uint8
}

// A step is an operation of the run in a slot.
type step struct {
	op, slot int16
}

// These operations belong to no program. The slot of their steps is the end where they are posted.
const (
	slowWrite = -1 - iota // delays the receiver
	slowRead              // delays the responder
	flush                 // the last message of an end: all before it has arrived
)

func (b *burst) run(slot int16) uint64 { return b.first + uint64(slot) }

func (b *burst) note(slot int16, value int, v uint8) {
	if value >= 0 {
		b.values[slot][value] = v
	}
}

// key returns all values of a run.
func (b *burst) key(slot int) (key int) {
	for i := range b.names {
		key |= int(b.values[slot][i]) << (valueBits * i)
	}
	return key
}

// plan decides how many runs there are, how long blocks are, and how the operations of the runs
// interleave. The operations of each run stay in order.
func (b *burst) plan(rnd *rand.Rand, g geometry, most int) {
	b.n = min(1+rnd.IntN(g.slots), most)
	if rnd.IntN(8) == 0 {
		b.n = min(b.n, 3)
	}
	b.words = 1
	if rnd.IntN(2) == 0 {
		b.words = 1 + rnd.IntN(g.words)
	}
	for e := range b.messages {
		b.messages[e] = b.messages[e][:0]
	}
	if b.phases == nil {
		b.phases = make([][][]step, len(b.threads))
	}
	slow := rnd.IntN(2) * (4 + rnd.IntN(60))
	for i, thread := range b.threads {
		b.phases[i] = b.planThread(rnd, thread, b.phases[i], slow)
	}
}

// planThread reuses the memory of the previous plan.
func (b *burst) planThread(rnd *rand.Rand, thread []int, phases [][]step, slow int) [][]step {
	phases = phases[:0]
	var used [ends]bool
	for begin := 0; begin <= len(thread); {
		n := 0
		for begin+n < len(thread) && b.ops[thread[begin+n]].verb != 0 {
			used[b.ops[thread[begin+n]].at] = true
			n++
		}
		var steps []step
		if len(phases) < cap(phases) {
			steps = phases[:len(phases)+1][len(phases)][:0]
		}
		phases = append(phases, b.interleave(rnd, thread[begin:begin+n], steps, slow))
		begin += n + 1
	}
	last := &phases[len(phases)-1]
	for e, is := range used {
		if is {
			*last = append(*last, step{flush, int16(e)})
			b.messages[e] = append(b.messages[e], step{flush, int16(e)})
		}
	}
	return phases
}

// interleave puts the operations of all runs in one order: one run after the other, or one
// operation after the other, or something between the two.
func (b *burst) interleave(rnd *rand.Rand, ops []int, steps []step, slow int) []step {
	group := [...]int{1, b.n, 1 + rnd.IntN(b.n)}[rnd.IntN(3)]
	for begin := 0; begin < b.n; begin += group {
		for _, o := range ops {
			for slot := begin; slot < min(begin+group, b.n); slot++ {
				if slow > 0 && rnd.IntN(slow) == 0 {
					steps = append(steps, step{int16(slowWrite - rnd.IntN(8)/7), int16(b.ops[o].at)})
				}
				st := step{int16(o), int16(slot)}
				steps = append(steps, st)
				if at := b.ops[o].at; b.ops[o].isMessage() {
					b.messages[at] = append(b.messages[at], st)
				}
			}
		}
	}
	return steps
}
