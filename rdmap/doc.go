// Package rdmap is the Remote Direct Memory Access Protocol (RFC 5040) with its
// extensions (RFC 7306): RDMA Write, RDMA Read, the four kinds of Send, Immediate Data,
// atomic operations, and Terminate, over one DDP stream.
//
// A [Stream] is one end of an RDMAP stream. It is a machine without goroutines,
// sockets or clocks, and its owner, a queue pair, drives it:
//
//   - [Stream.Post] puts work requests into the send queue, from any goroutine;
//   - [Stream.Fill] turns them, and the answers to the peer's requests, into DDP
//     segments in the batch of a [transport.LLP]; [Stream.Flushed] follows when the
//     batch is out;
//   - [Stream.Segment] takes what the LLP received, as that of
//     [transport.Placer] does;
//   - [Stream.Terminate] and [Stream.End] end it.
//
// Work requests complete through [Events], in the order of posting (RFC 5040
// section 5.5 rule 15). Messages of the peer go to the [ReceiveQueue], or, for requests
// that are of neither RFC, to an [Extension].
package rdmap
