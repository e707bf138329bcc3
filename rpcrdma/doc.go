// Package rpcrdma carries ONC RPC over RDMA version 1 (RFC 8166), the transport of NFS with "proto=rdma".
// It implements servers and clients of that transport; the package's user supplies the RPC programs, such as NFS.
//
// # Servers
//
// [NewListener] turns an iwarp.Listener into a net.Listener. Its connections carry RPC with record marks, as over TCP
// (RFC 5531 section 11), so that any ONC RPC server that takes a net.Listener serves RDMA:
//
//	listener, err := rnic.Listen(ctx, "tcp", ":20049", nil)
//	err = server.Serve(rpcrdma.NewListener(listener, &rpcrdma.Config{RNIC: rnic}))
//
// [Accept] makes a [Conn] instead, for a program that handles whole calls: it gets a [Call] from [Conn.ReadCall], and
// answers it with [Call.Reply].
//
// # Clients
//
// [Dial] makes a [Client], and [Client.Do] calls a program: the caller makes the RPC call, names the parts of the call and
// of its reply that may move by RDMA, and gets the RPC reply. The server reads the data of a WRITE directly from the caller's
// memory, and writes the data of a READ directly to it. Linux's server (knfsd) accepts such calls.
//
// # Chunks
//
// A client sends short messages inline, and names its memory for long ones. A server hands a call over after all of it
// has been read. This package decides which part of a reply is inline, and which part is written to the chunks that the
// call has named. A [Binding] says which part of a reply may go by a Write chunk, and an [ArgumentBinding] which part of
// a call may come by a Read chunk (RFC 8166 section 6); the binding of version 3 of NFS (RFC 8267) is the default.
// Instead of a reply that fits nowhere, the client gets an error of the transport, which fails only that call.
//
// Only the server moves data. No region of the server has remote access rights, so a client can neither read nor write an octet
// there by an STag, and each connection has a PD of its own. A Client lets the server read, or write, exactly what a call
// names, from Do until the reply has come.
//
// # Clients that misbehave
//
// All chunks of a call are checked before memory is taken for it. Config.MaxBytes bounds the memory of all calls
// and replies that are longer than Config.Inline, half of it for each; one connection gets a quarter of
// each half at most. Calls wait for memory in the order in which they came, and so do replies. Besides, a connection has
// Config.Credits+8 receives of Config.Inline octets, and twice that size for each of Config.Credits replies.
//
// A call whose chunks are invalid, or contain an argument that is not eligible, is answered by an error of the transport. A
// message that no client sends, such as a second call with the XID of a call that is not answered yet, ends the connection, and so does a
// client that lets the RDMA Reads of a call, or a reply, wait for a minute. While another connection waits for the
// memory that such a client occupies, the limit is ten seconds, or at most twenty after the last octet has moved. Many such clients in
// turn can delay the others all the same, and so can clients that move an octet now and then: keep
// them out by Admit or Auth of the iwarp.ListenConfig.
//
// # What is not supported
//
// The package does not cache replies to calls that are repeated on a new connection, and a Client does not reconnect by
// itself. Calls from the server to the client (RFC 8167) are not supported.
package rpcrdma
