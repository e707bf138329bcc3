// Package ring provides the memory of queues: a ring of places with ever-increasing numbers.
package ring

// A Ring keeps place i at i modulo its length, which is a power of two or 0. Its owner records
// which places are in use.
type Ring[T any] []T

// At returns place i.
func (r Ring[T]) At(i uint64) *T { return &r[i&uint64(len(r)-1)] }

// Grown returns a ring of twice the length, and of at least least places, with a copy of the
// places of r between from and to. r stays unchanged: other goroutines may be reading it.
func (r Ring[T]) Grown(least int, from, to uint64) Ring[T] {
	return r.moved(max(least, 2*len(r)), from, to)
}

// moved returns a ring of least places, or somewhat more, with a copy of the places of r between
// from and to.
func (r Ring[T]) moved(least int, from, to uint64) Ring[T] {
	n := 1
	for n < least {
		n *= 2
	}
	other := make(Ring[T], n)
	for i := from; i != to; i++ {
		*other.At(i) = *r.At(i)
	}
	return other
}
