// Package sctp implements DDP over SCTP (RFC 5043, with the enhanced sessions of RFC 6581). It
// turns one pair of SCTP streams into a [transport.LLP].
//
// SCTP preserves the boundaries of messages and has a CRC32c of its own, so there are no
// FPDUs: one unordered message carries one DDP segment after a 16-bit sequence
// number, the DDP-SSN, or one message of session control. Many sessions share an
// association, each on its own pair of streams.
//
// The associations come from a back end, package sctpudp or sctpkernel, which provides
// [Stream]s. [Connect] requests a session on a Stream, and [ReadRequest] waits for a request of
// the peer; both lead to a [Conn].
//
// # A session
//
// A session begins with an Initiate and an Accept or a Reject, which carry the private data of the
// applications and, in their enhanced form (RFC 6581), IRD and ORD. It ends with a Terminate of session
// control, because the streams of the association remain (RFC 5043 sections 5 and 6). Segments are
// delivered as they arrive, in any order: see [transport.Caps].OutOfOrder.
//
// # Concurrency and memory
//
// A Conn is used like any transport.LLP: one goroutine at a time for each half. All that is sent is
// copied, so the caller may reuse it at once. If a peer breaks the rules the error is a
// [ViolationError]; a refusal is a [RejectError].
package sctp
