// Package stag implements steering tags (STags), by which a peer names memory of this side, and
// the regions and access rights behind them. A single check, [Table.Pin], guards every remote
// access (RFC 5040 section 8.1.1, RFC 5042 section 6).
//
//   - A [Region] is a run of octets, in memory or in a [Buffer] such as a file. It has a base
//     tagged offset (TO), rights, and a [Scope], which says who may access it.
//   - A [FastRegion] is an STag under which octets can be registered repeatedly, and a [Window]
//     grants access to a part of a region.
//   - A [Table] finds regions by [STag]. [Table.Pin] checks an access, and holds the region for
//     the moment of one placement. A pin is never held while its holder waits for a peer, so
//     that Invalidate is quick.
//   - A [Region.Hold] keeps the octets themselves in place, while a work request that was
//     already handed to the network still refers to them.
//   - Lists of [Span] say where a message is gathered from and scattered to.
//
// Looking up, pinning, placing and walking spans take no lock and allocate nothing.
// Two peers with the right to write may write the same octets at the same time;
// the result is as undefined as RFC 5040 leaves it.
//
// # Use
//
// A program that uses package iwarp needs only the rights ([LocalWrite], [RemoteRead] and so
// on) and the type [STag] of this package. A program that implements another protocol on
// package ddp makes the check itself (see the Example):
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
