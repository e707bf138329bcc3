// Package sctp implements DDP over SCTP (RFC 5043, with the enhanced sessions of RFC 6581). It
// makes a [transport.LLP] of one pair of SCTP streams.
//
// SCTP keeps the boundaries of messages and has a CRC32c of its own, so there are no
// FPDUs here: one unordered message carries one DDP segment after a 16-bit sequence
// number, the DDP-SSN, or one message of session control. Many sessions share an
// association, each on its own pair of streams.
//
// The associations come from a back end, package sctpudp or sctpkernel, which gives this
// package [Stream]s. [Connect] asks for a session on a Stream, and [ReadRequest] waits for the
// peer to ask; both end in a [Conn].
//
// # A session
//
// It begins with an Initiate and an Accept or a Reject, with the private data of the applications and,
// in their enhanced form (RFC 6581), IRD and ORD; and it ends with a Terminate of session control, for the
// streams of the association stay (RFC 5043 sections 5 and 6). Segments are delivered as they come,
// in any order: [transport.Caps].OutOfOrder.
//
// # Concurrency and memory
//
// A Conn is used as any transport.LLP: one goroutine at a time for each half. All that is sent is
// copied, so the caller may reuse it at once. The errors of a peer that breaks the rules are of type
// [ViolationError]; a refusal is a [RejectError].
package sctp
