// Package rdmap implements the Remote Direct Memory Access Protocol (RFC 5040) with its
// extensions (RFC 7306): RDMA Write, RDMA Read, the four kinds of Send, Immediate Data,
// atomic operations, and Terminate, over one DDP stream.
//
// A [Stream] is one end of an RDMAP stream. It is a state machine without goroutines,
// sockets or clocks. Its owner, a queue pair, drives it:
//
//   - [Stream.Post] queues work requests in the send queue, from any goroutine;
//   - [Stream.Fill] appends them, and the responses to the peer's requests, as DDP
//     segments to the batch of a [transport.LLP]; [Stream.Flushed] is called when the
//     batch was sent;
//   - [Stream.Segment] processes the segments that the LLP has received, as a
//     [transport.Placer];
//   - [Stream.Terminate] and [Stream.End] end the stream.
//
// Work requests complete through [Events], in the order of posting (RFC 5040
// section 5.5 rule 15). Messages of the peer go to the [ReceiveQueue]. Requests that
// neither RFC defines go to an [Extension].
//
//	s := rdmap.New(rdmap.Config{Table: table, Scope: scope, IRD: 16, ORD: 16, SendDepth: 128, Receives: queue, Events: events})
//
// # Concurrency and memory
//
// One goroutine at a time may send (Fill, Flush, Flushed), and one may receive (the methods of
// [transport.Placer], and BatchDone); any goroutine may call all other methods. Events are called
// with the lock of the Stream held, except where they say otherwise, and must not call the Stream.
// The memory that a request names must remain until it completes. A Stream retains no octets of a
// segment after the call that has passed it.
//
// # Errors
//
// A violation by the peer is a [transport.Fault], with the code of the Terminate that reports it
// (RFC 5040 section 4.8), and ends the stream. Post refuses a work request that is not valid
// ([ErrRequest], [ErrQueueFull], [ErrEnded]), which does not end the stream.
package rdmap
