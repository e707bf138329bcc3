package program

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"math/bits"
	"math/rand/v2"
)

// A Mem is the model of some memory of one end.
type Mem struct {
	Name  string
	End   End
	First []byte // the octets at its registration
	want  []byte // after everything that was planned so far
}

// newMem makes n octets. Their values depend on the name, so that misplaced octets are noticed.
func newMem(name string, end End, n int) *Mem {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	r := rand.New(rand.NewPCG(h.Sum64(), 0))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return &Mem{Name: name, End: end, First: b, want: bytes.Clone(b)}
}

// An Effect is the change that a work request makes to octets.
type Effect struct {
	Mem  *Mem
	Off  int
	Data []byte
}

// effect applies an effect to the model.
func (w *Work) effect(m *Mem, off int, data []byte) {
	e := Effect{m, off, bytes.Clone(data)}
	copy(m.want[off:], e.Data)
	w.Effects = append(w.Effects, e)
}

// A span is a range of octets of a Mem.
type span struct {
	mem *Mem
	off int
	n   int
}

func (s span) meets(all []span) bool {
	for _, o := range all {
		if s.mem == o.mem && s.off < o.off+o.n && o.off < s.off+s.n {
			return true
		}
	}
	return false
}

// atomic returns the result of an atomic operation on a value (RFC 7306 section 5).
func (o *Op) atomic(old uint64) uint64 {
	mask := o.Mask
	switch o.Verb {
	case FetchAdd:
		return addFields(old, o.Add, mask)
	case CompareSwp:
		if mask == 0 {
			mask = ^mask
		}
		if (old^o.Cmp)&mask != 0 {
			return old
		}
	default:
		if mask == 0 {
			mask = ^mask
		}
	}
	return old&^mask | o.Swap&mask
}

// addFields adds field by field: each bit of mask is the most significant one of a field.
func addFields(a, b, mask uint64) uint64 {
	var sum uint64
	for low := 0; low < 64; {
		high := 63
		if rest := mask >> low; rest != 0 {
			high = low + bits.TrailingZeros64(rest)
		}
		field := (^uint64(0) >> (63 - (high - low))) << low
		sum |= (a&field + b&field) & field
		low = high + 1
	}
	return sum
}

// cell returns the integer at off.
func (m *Mem) cell(off int) uint64 { return binary.NativeEndian.Uint64(m.want[off:]) }
