// Package ring has the memory of queues: a ring of places that are numbered without end.
package ring

// A Ring has place i at i modulo its length, which is a power of two or 0. Which places are in
// use is its owner's business.
type Ring[T any] []T

// At is place i.
func (r Ring[T]) At(i uint64) *T { return &r[i&uint64(len(r)-1)] }

// Grown returns a ring of twice the length, and of least places or more, with places from up to
// to as they are in r. r stays as it is: others may be looking at it.
func (r Ring[T]) Grown(least int, from, to uint64) Ring[T] {
	return r.moved(max(least, 2*len(r)), from, to)
}

// moved returns a ring of least places, or somewhat more, with places from up to to as they are
// in r.
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
