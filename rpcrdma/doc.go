// Package rpcrdma carries ONC RPC over RDMA version 1 (RFC 8166), which is what NFS speaks with "proto=rdma".
// It is the transport of servers and of clients; the RPC programs, such as NFS, are those of the package's user.
//
// # Servers
//
// [NewListener] makes a net.Listener of an iwarp.Listener. Its connections carry RPC with record marks, as over TCP
// (RFC 5531 section 11), so that any ONC RPC server that takes a net.Listener serves RDMA:
//
//	listener, err := rnic.Listen(ctx, "tcp", ":20049", nil)
//	err = server.Serve(rpcrdma.NewListener(listener, &rpcrdma.Config{RNIC: rnic}))
//
// [Accept] makes a [Conn] instead, for a program that wants whole calls: it takes a [Call] from [Conn.ReadCall], and
// answers it with [Call.Reply].
//
// # Clients
//
// [Dial] makes a [Client], and [Client.Do] calls a program: the caller makes the RPC call, names what of it, and of
// its reply, may move by RDMA, and gets the RPC reply. The server reads data of a WRITE where it is, and writes data of a READ to
// where it is wanted. The server of Linux (knfsd) takes it.
//
// # Chunks
//
// A client sends short messages inline, and names its memory for long ones. A call is handed up when all of it has
// been read. Where a reply goes is decided here: what is inline, and what is written to the chunks that the
// call has named. A [Binding] says which part of a reply may go by a Write chunk (RFC 8166 section 6); that of
// version 3 of NFS (RFC 8267) is the default. A reply that fits nowhere is answered by an error of the transport,
// which fails only that call.
//
// Only the server moves data. No region of it has a remote right, so a client can neither read nor write an octet there
// by an STag, and each connection has a PD of its own. A Client lets the server read, or write, exactly what a call
// names, from Do until the reply has come.
//
// # Clients that misbehave
//
// All chunks of a call are checked before memory is taken for it. Config.MaxBytes bounds the memory of all calls
// and replies that are longer than Config.Inline, half of it for each; one connection gets a quarter of
// each half at most. Calls wait for memory in the order in which they came, and replies do. Besides, a connection has
// Config.Credits+8 receives of Config.Inline octets, and twice that size for each of Config.Credits replies.
//
// A call whose chunks make no sense is answered by an error of the transport. A message that no client
// sends, such as a second call with the XID of one that is not answered yet, ends the connection, and so does a
// client that lets the RDMA Reads of a call, or a reply, wait for a minute. While another connection waits for the
// memory of these, it does so after ten seconds, or at most twenty after the last octet has moved. Many such clients in turn can hold up the
// others all the same, and so can clients that move an octet now and then: let Admit or Auth of the iwarp.ListenConfig keep
// them out.
//
// # What there is not
//
// There is no cache of replies to calls that are repeated on a new connection, and a Client does not connect again by
// itself. Calls from the server to the client (RFC 8167) are not supported.
package rpcrdma
