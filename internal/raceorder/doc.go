// Package raceorder orders this library's accesses to registered memory in a way that the
// race detector sees.
//
// Two peers may write to the same octets at once, or one may read what another writes. RDMA
// leaves the result undefined, so this is not an error of the program. Without an order
// between the two accesses the race detector would report one. It still reports accesses of
// the application itself to memory that a peer may be using. Without the race detector the
// functions here do nothing. Tests ask whether it is on.
package raceorder
