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
//
//	conn, err := transport.Dial(ctx, "tcp", addr, transport.Options{})
//	stream := transport.NewStream(conn, poller) // conn now belongs to the Stream
//
// # Errors
//
// A [Fault] is a protocol error with its [Code]: the three numbers of a Terminate message that
// RFC 6580 and RFC 6581 register. It is in this package because all layers detect such errors.
//
// # Concurrency and memory
//
// One goroutine at a time may read from a Stream or an LLP, and one may write; the two halves are
// independent, and all other methods may be called from any goroutine. Octets that are written must
// not change until the call, or the Flush of the batch, has succeeded. A Poller and what it watches
// may be used by any number of goroutines.
package transport
