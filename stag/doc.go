// Package stag is memory as the wire sees it: steering tags, access rights, the
// regions behind them, and the one check that every remote access passes
// (RFC 5040 section 8.1.1, RFC 5042 section 6).
//
// A [Region] is a run of octets with a base tagged offset (TO), rights, and a
// [Scope]; its octets are memory or a [Buffer], such as a file. A [FastRegion] is given
// octets again and again, and a [Window] parts of regions. A [Table] finds
// regions by [STag]. [Table.Pin] checks an access and holds the region for the
// moment of one placement; a pin is never held while its holder waits for a peer,
// so Invalidate is quick. A [Region.Hold] keeps the octets themselves in place while a
// work request that was already handed to the network still refers to them. Lists
// of [Span] say where a message is gathered from and scattered to.
//
// Looking up, pinning, placing and walking spans take no lock and allocate nothing.
// Two peers with the right to write may write the same octets at the same time;
// the result is as undefined as RFC 5040 leaves it.
//
// # Use
//
// A program on the verbs needs the rights ([LocalWrite], [RemoteRead] and so on) and the type
// [STag]. A protocol of its own makes the check by itself (see the Example):
//
//	region, err := table.Register(memory, stag.Options{Access: stag.RemoteRead, Scope: scope})
//	r, off, violation := table.Pin(scope, st, stag.RemoteRead, to, n)
//
// # Memory and concurrency
//
// Memory and Buffers belong to the caller, and must stay in place until the Region is closed.
// All methods of a Table may be called from any goroutine. A Buffer is called by the
// goroutines that move octets, possibly by several at a time; if it panics, that is a
// [PanicError] of the operation.
package stag
