// Package rsocket implements the stream sockets of librdmacm, rsockets, in iWARP mode. A [Conn] is a
// net.Conn whose octets are moved by RDMA Writes, and its peer is either another Conn or a program that
// uses librdmacm: rstream, rcopy, or any program that runs under librspreload.
//
//	listener, err := rsocket.Listen(ctx, rnic, "tcp", ":7471", nil)      // the server
//	err = http.Serve(listener, handler)
//	conn, err := rsocket.Dial(ctx, rnic, "tcp", "192.0.2.1:7471", nil) // the client
//
// [Dial] makes the Conn of the initiator, [Listen] returns a net.Listener, [Accept] answers a connection
// request of a listener of the program's own, and [Dialer] makes the function that an http.Transport or a
// client of gRPC dials with.
//
// # The stream
//
// Each side gives the other a half of its read buffer at a time. Write copies into the write buffer, and
// returns when all octets are with the QP: it waits while that buffer is full, and while the peer has given
// no room. Read copies out of the read buffer. ReadFrom and WriteTo, which io.Copy uses, save that copy.
// The read buffer grows, up to Config.MaxReadBuffer, where its size holds the stream up.
//
// Deadlines end the wait of a call and leave the stream intact: what Write has taken, as its result says,
// is sent.
//
// # The end
//
// The end of a stream is a message, not the end of the connection: after CloseWrite the peer reads
// io.EOF behind the last octet and may still write, and after Close it may not. A connection that ends
// without the message gives io.ErrUnexpectedEOF, behind all that has come, or the error of the QP if there
// is one. A program that exits without rclose ends its connection so; Config.LenientEOF takes
// that for the end of the stream.
//
// Close sends what was written, within five seconds, and loses what was not read. Its error tells where the peer may not have all that was
// written: that it has ended its half, within the CloseTimeout of the RNIC, tells that it has. Close all Conns before
// the RNIC: a program that uses librdmacm may wait for ever if the connection ends without the message.
//
// # Memory that is written by offset
//
// With Config.IOMap the peer may name memory of its own (riomap), and [Conn.WriteMapped] writes to it by offset; [Conn.Map] and
// [Conn.MapBuffer] name memory to the peer, for its riowrite. Such Writes have no messages and use no credits; what is
// written to the stream behind them arrives behind them.
//
// # Memory
//
// A Conn has ReadBuffer, or what that has grown to, and WriteBuffer octets for the stream, and some 70 KiB
// besides with 384 Credits. It has one goroutine, which waits for the end of the connection, and at times a second one: what comes is
// received by the goroutines that wait in Read, Write and the like, and by that one while none of them waits. A peer cannot make it take more than MaxReadBuffer,
// whatever it sends. A Listener has 128 Conns at most that
// Accept has not returned; further peers wait.
//
// # Errors
//
// Errors of a Conn are of type *net.OpError, but for io.EOF, and for what the reader of ReadFrom or the writer of WriteTo has
// returned; those of Dial and Listen come from package iwarp. A peer that does not keep to the protocol ends its
// connection with an error that matches ErrProtocol; a deadline matches os.ErrDeadlineExceeded, a Conn that was closed on this side
// net.ErrClosed, a Write behind CloseWrite io.ErrClosedPipe, and a Write to a peer that has closed its end
// syscall.ECONNRESET; Map and WriteMapped fail as a Write does.
//
// # Limits
//
// There are no datagrams, since iWARP has no such queue pairs, and no urgent data. Memory that was mapped stays so until
// the Conn is closed. Both sides must be iWARP. A program that forks after accept with RDMAV_FORK_SAFE uses another protocol, which is not supported.
//
// The octets are neither encrypted nor authenticated unless Config.QP has TLS or Auth for Dial, and Config.Listen
// for Listen. librdmacm does not know them.
package rsocket
