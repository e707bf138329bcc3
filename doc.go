// Package iwarp gives Go programs remote direct memory access over ordinary IP
// networks: iWARP, in user space, with no cgo and no special hardware. Its peers are
// Linux's soft-iWARP driver, iWARP network cards, and itself.
//
// # Objects
//
// An [RNIC] is where everything begins. A [PD] (protection domain) holds memory
// regions: [PD.RegisterMR] makes memory, and [PD.RegisterBuffer] makes a file or
// anything else with ReadAt and WriteAt, reachable for a peer under an STag. Two kinds
// of STag come and go with the work of a QP: a memory window, [PD.AllocMW], lends a
// part of a region, and a region of [PD.AllocMR] gets its memory by fast registration.
// A [CQ] (completion queue) tells what has been done. A [QP] (queue pair) is a connection:
// it is made by [RNIC.Dial] on one side, and by [RNIC.Listen], [Listener.Accept] and
// [ConnRequest.Accept] on the other; [RNIC.Client] and [RNIC.Server] make one of a
// net.Conn. An [SRQ] (shared receive queue) has receives for the messages of many QPs:
// the first to come takes the oldest.
//
// # Work
//
// Work requests are posted with [QP.PostSend], for which [SendWR] has the list, and with
// [QP.PostRecv] or [SRQ.PostRecv]. Posting never blocks. Each work request ends with a
// [WC] on a CQ, those of one queue in the order in which they were posted. For each
// operation there is a blocking helper, such as [QP.Send], [QP.Recv], [QP.RDMAWrite],
// [QP.RDMARead] and [QP.Commit], that does it and waits, and [QP.Do] is one for a list of
// work requests; [QP.Remote] makes an
// io.ReaderAt and io.WriterAt of the peer's memory. To reach memory of the peer one needs its
// [RemoteBuffer]: the owner makes it with [MR.Advertise] or [MW.Advertise] and tells it
// by private data or a Send.
//
// Every verb has an example on its page. In the examples must and check panic on an
// error, and pair and joined connect two QPs of one process.
//
// # Rules
//
// Setup: [QPConfig].Setup runs while the QP is Idle, before our Request or Reply
// goes out. Receives posted and memory registered there are in place before the
// first message can come; send work requests posted there are sent once the
// connection is there. A message that finds no receive posted waits for
// QPConfig.RNRWait, 30 s by default, during which nothing is read from the connection;
// then the stream ends. EventNoReceive tells of the wait after its first second.
//
// Helpers: the completion of a blocking helper is its own: it never appears on a CQ, so
// helpers and posted work may be mixed on one QP, in the order in which they are posted.
// Where the queue is full a helper waits for a slot under its context; a slot is free when
// the helper that has it is done, or when the completion of posted work has been polled: if
// nobody polls, it waits until the context ends. A context that ends stops the waiting and
// not the work request: its memory stays the QP's until it is done, at the latest when the
// QP has ended (see [QP.Done]), and [MR.Close] waits for it. The error is then the context's. Before the QP is
// established, in Setup, a helper fails.
//
// Beginning: a responder may send when the first message of the initiator has come (RFC
// 5044 section 7.1.2); what it posts before waits. By default the initiator sends an
// empty message of its own accord, so that either application may begin (peer to peer,
// RFC 6581 section 9.2). With MPAOptions.ClientServer, and with peers that know only
// revision 1, the initiator's application has to.
//
// Memory: what is given to RegisterMR may be read or written by the peer at any
// moment that its rights allow; a completion is the synchronisation point. What a
// work request names is the QP's until its completion, even if the context of a
// helper that posted it has ended, and what was being moved when a QP ended is
// indeterminate. The source of a Send or RDMA Write must not change before its
// completion: where CRCs are in use the peer would see a broken digest and end the
// stream. Sources that a peer may write to, itself or through a window, and what a peer
// reads, may change at any time: with CRCs they are copied first.
// The sink of an RDMA Read must not change before its completion either: octets are
// verified where they are to stay, and one that somebody else of this process writes
// there meanwhile looks like a broken digest. Sinks of several Reads of one QP may
// overlap, and a sink that a peer may write to is read into by way of a copy.
//
// Completion: an RDMA Write completes when the data has been handed to the network,
// as RFC 5040 says; that it was placed is told by a later RDMA Read, or by a message
// of the peer. A receive completes when its message, and everything that the peer
// sent before it, has been placed. There is no order between QPs.
//
// Atomic operations: the peer's integer is changed by sync/atomic, so code of that
// process that uses sync/atomic on it takes part; plain loads and stores, and RDMA
// Reads and Writes, may come in between (RFC 7306 section 5). In a [Buffer], too, it is
// in the byte order of the host, and the atomic operations of one RNIC take turns. They
// count against the ORD and IRD together with RDMA Reads, and are done in the order in
// which they were posted, each when its answer and those of all Reads before it have been
// made.
//
// Extensions: Immediate Data and atomic operations are those of RFC 7306. Whether the
// peer knows them is for the applications to tell each other, in the private data for
// one (RFC 7306 section 1.1): [QP.Extensions] is what to tell, [QP.PeerExtensions] what is
// known of the peer. A peer that does not know them ends the connection, with an error here
// that matches ErrUnsupported.
//
// Durability: with [QPConfig].Commit, [QP.Commit] makes durable what was written to the
// peer's memory before, [QP.CommitThen] stores eight octets behind that, and the peer's program takes no
// part in either. What durable means is the peer's choice, when it registers the memory:
// [MROptions].Durable, and package commit. A Commit that the media have failed is an error of
// that Commit alone.
//
// Errors: the first error ends a QP. Where this side found it, a Terminate message
// tells the peer; all work that is not complete is flushed, and everything that the
// QP answers from then on wraps net.ErrClosed and the first cause, which errors.As
// finds: a [TerminateError] of either direction, or an error of the connection. A
// call that need not block succeeds even if its context has already ended.
//
// Revocation: an STag is dead as soon as it is invalidated, whichever way: by
// [MR.Invalidate] and [MW.Invalidate], by a work request (OpLocalInvalidate, or
// OpRDMAReadInvalidate for the sink of a Read), by the peer (its Send with Invalidate),
// or, if it is a window's, by the end of its QP. None of them waits for a peer, and once
// it is done nothing is placed any more. The peer can invalidate what is its QP's alone
// and grants it something: windows, and regions with [MROptions].QP. WC.STag tells which
// it was, and a program that was promised one checks it. A region goes after its windows.
// Regions may overlap, each with an STag, rights and a life of its own; so there are no
// shared regions besides.
//
// End: [QP.Close] refuses new posts, finishes what is queued and the peer's Reads,
// ends the connection, and flushes the receive queue, within Config.CloseTimeout. The
// peer's QP then ends too, with an error if its send queue is not empty. A message that
// it sends behind the end is thrown away and makes the end an error here, so the
// applications should agree on the end first. [QP.Terminate] tells the peer
// that this side cannot go on; [QP.Abort] does not wait. When any of them returns, or
// the channel of [QP.Done] is closed, everything is completed. [QP.Drain] waits for
// what was sent and ends nothing. A program ends with [RNIC.Shutdown], which closes all
// QPs gracefully, within a context; [RNIC.Close] aborts everything, so that the last messages
// may be lost, and waits for all goroutines. Waiting on a CQ ends with its QP or its RNIC. How
// a QP has ended, and other things that no completion tells, is told by [RNIC.Events].
//
// # Security
//
// A peer can reach nothing but regions of the QP's PD, octet-exactly, within their
// rights; an STag is hard to guess, but it is no secret key: RFC 5042 wants peers
// that do not trust each other in different PDs, or regions bound to one QP
// ([MROptions].QP). Data is protected against corruption by CRC32c, not against an
// attacker on the path: use QPConfig.TLS and ListenConfig.TLS, or IPsec, which the
// host provides (RFC 5042 section 5; RFC 7146). Code of the same process is not kept
// apart by PDs; [Limits] keep it from taking more than its share.
//
// # Layers
//
// The package stands on rdmap, ddp, mpa, stag and transport, one for each layer of
// RFC 4296; each can be used by itself.
package iwarp
