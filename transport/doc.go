// Package transport is what iWARP stands on: the contract between DDP and the
// layer below it, and the sockets that the library can use.
//
// Two floors meet here. A [Stream] is a reliable byte stream (TCP, TLS, any
// net.Conn, or one end of an in-memory pipe); package mpa frames it and so makes
// an [LLP] of it. An LLP carries whole DDP segments, which is all that package
// ddp ever sees (RFC 5041 section 3).
//
// [Dial] and [Listen] make connections, [TLSClient] and [TLSServer] secure them,
// [NewStream] makes a Stream of one, whose readiness a [Poller] can tell, and [Tap]
// records it for Wireshark. For tests and for peers within one process there is [Pipe], a
// byte stream in memory.
package transport
