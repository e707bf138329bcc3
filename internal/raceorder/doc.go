// Package raceorder puts what this library does to registered memory in an order that
// the race detector sees.
//
// Two peers may write to the same octets at once, or one may read what another writes:
// RDMA leaves the result open, and it is none of this program's mistakes. Without an
// order between the two accesses the race detector would call it one. What the
// application itself does to memory while a peer may use it stays visible to it.
// Outside of the race detector nothing is done here. Tests ask whether it is on.
package raceorder
