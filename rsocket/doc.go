// Package rsocket implements the stream sockets of librdmacm, rsockets, in iWARP mode. A [Conn] is a
// net.Conn whose octets are moved by RDMA Writes, and its peer is either another Conn or a program that
// uses librdmacm: rstream, rcopy, or any program that runs under librspreload.
//
//	listener, err := rsocket.Listen(ctx, rnic, "tcp", ":7471", nil)      // the server
//	err = http.Serve(listener, handler)
//	conn, err := rsocket.Dial(ctx, rnic, "tcp", "192.0.2.1:7471", nil) // the client
//
// [Dial] makes the initiator's Conn, [Listen] returns a net.Listener, [Accept] answers a connection
// request from a listener of the program, and [Dialer] returns the function with which an http.Transport
// or a gRPC client dials.
//
// # The stream
//
// Each side gives the other a half of its read buffer at a time. Write copies into the write buffer, and
// returns when all octets have been posted to the QP: it waits while that buffer is full, and while the peer
// has given no room. Read copies out of the read buffer. ReadFrom and WriteTo, which io.Copy uses, save that copy.
// The read buffer grows, up to Config.MaxReadBuffer, if its size limits the throughput.
//
// A deadline ends the wait of a call and leaves the stream intact: the octets that Write reports as
// written are sent.
//
// # The end
//
// The end of a stream is a message, not the end of the connection: after CloseWrite the peer reads
// io.EOF behind the last octet and may still write, and after Close it may not. If the connection ends
// without the message, Read returns everything received, and then the error of the QP, or io.ErrUnexpectedEOF if
// there is none. A program that exits without rclose ends its connection in this way; Config.LenientEOF treats
// that as the end of the stream.
//
// Close sends what was written, within five seconds, and discards what was not read. It returns an error if the peer may not have
// received everything: only a peer that ends its half, within the RNIC's CloseTimeout, is known to have it all. Close all Conns
// before the RNIC: a program that uses librdmacm may wait for ever if the connection ends without the message.
//
// # Memory that is written by offset
//
// With Config.IOMap the peer may name memory of its own (riomap), and [Conn.WriteMapped] writes to it by offset; [Conn.Map] and
// [Conn.MapBuffer] name memory to the peer, for its riowrite. Such Writes have no messages and use no credits. What is
// written to the stream later arrives after them.
//
// # Memory
//
// A Conn uses ReadBuffer octets, or as many as that buffer has grown to, WriteBuffer octets, and some 70 KiB
// besides with 384 Credits. It has one goroutine, which waits for the end of the connection. Goroutines that wait in Read, Write and
// the like receive what comes; while none of them waits, a second goroutine may do so. No peer can make the read buffer grow
// beyond MaxReadBuffer, whatever it sends. A Listener holds at most 128 Conns that Accept has not returned; further peers wait.
//
// # Errors
//
// Errors of a Conn are of type *net.OpError, except io.EOF and errors returned by the reader of ReadFrom or the writer of
// WriteTo. Errors of Dial and Listen come from package iwarp. If a peer violates the protocol, the
// connection ends with an error that matches ErrProtocol. A deadline matches os.ErrDeadlineExceeded, a Conn that was closed on this side
// net.ErrClosed, a Write after CloseWrite io.ErrClosedPipe, and a Write to a peer that has closed its end
// syscall.ECONNRESET. Map and WriteMapped fail as Write does.
//
// # Limits
//
// There are no datagrams, since iWARP has no such queue pairs, and no urgent data. Mapped memory stays mapped until
// the Conn is closed. Both sides must use iWARP. A program that forks after accept with RDMAV_FORK_SAFE uses another protocol, which is not supported.
//
// The octets are neither encrypted nor authenticated unless TLS or Auth is set, in Config.QP for Dial and in
// Config.Listen for Listen. librdmacm supports neither.
package rsocket
