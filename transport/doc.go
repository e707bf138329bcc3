// Package transport defines the interface between DDP and the layer below it, and implements the
// byte streams that the library uses.
//
// It has two levels. A [Stream] is a reliable byte stream: TCP, TLS, any net.Conn, or one end of
// an in-memory pipe. An [LLP] carries whole DDP segments, which is all that package ddp needs
// (RFC 5041 section 3). Package mpa implements an LLP over a Stream, by framing.
//
// [Dial] and [Listen] make connections, and [TLSClient] and [TLSServer] secure them. [NewStream]
// returns a Stream that uses a connection. A [Poller] reports which idle Streams have input, and
// [Tap] records a Stream for Wireshark. [Pipe] is a byte stream in memory, for tests and for
// peers within one process.
package transport
