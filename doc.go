// Package iwarp implements iWARP: remote direct memory access (RDMA) over TCP and SCTP, in
// user space, with no cgo and no special hardware.
//
// With RDMA a program reads and writes registered memory, or a file, of another host, and no
// code of a program runs there. The protocols are RDMAP, DDP and MPA (RFC 5040, 5041, 5043,
// 5044, 6581 and 7306). Peers are Linux's soft-iWARP driver (siw), iWARP network cards, and
// this package.
//
// Every verb has an example on its page. In the examples must and check panic on an
// error, and pair and joined connect two QPs of one process.
//
// # Objects
//
// An [RNIC], made by [Open], owns all other objects. A process usually has one.
//
// A [PD] (protection domain) holds memory regions and QPs: a QP reaches only regions of its
// own PD.
//
// An [MR] (memory region) is what a peer can reach, under the name of an STag.
// [PD.RegisterMR] registers memory, and [PD.RegisterBuffer] a file or anything else with
// ReadAt and WriteAt. Two kinds of STag are enabled and invalidated by work requests of a QP:
// an [MW] (memory window), made by [PD.AllocMW], grants a part of a region, and a region of
// [PD.AllocMR] gets its memory by fast registration.
//
// A [QP] (queue pair) is a connection with its send queue and its receive queue.
//
// A [CQ] (completion queue) takes the completions of the work requests of one or more QPs.
//
// An [SRQ] (shared receive queue) holds receives for the messages of many QPs: the first
// message to come takes the oldest receive.
//
// # Connections
//
// [RNIC.Dial] makes a QP on one side, and [RNIC.Listen], [Listener.Accept] and
// [ConnRequest.Accept] on the other; [RNIC.Client] and [RNIC.Server] make a QP of a net.Conn.
//
// [QPConfig].Setup runs while the QP is Idle, before our Request or Reply goes out. Receives
// posted and memory registered there are in place before the first message can come; send
// work requests posted there are sent once the QP is established.
//
// A responder may send when the first message of the initiator has come (RFC 5044 section
// 7.1.2); what it posts before waits. By default the initiator sends an empty message of its
// own accord, so that either application may begin (peer to peer, RFC 6581 section 9.2). With
// MPAOptions.ClientServer, and with peers that know only revision 1, the initiator's
// application has to begin.
//
// # Work requests and completions
//
// Work requests are posted with [QP.PostSend], for which [SendWR] lists the operations, and
// with [QP.PostRecv] or [SRQ.PostRecv]. Posting never blocks. Each work request ends with a
// [WC] (work completion) on a CQ, those of one queue in the order in which they were posted;
// one that is Unsignaled has a WC only if it fails.
//
// For each operation there is a blocking helper, such as [QP.Send], [QP.Recv],
// [QP.RDMAWrite], [QP.RDMARead] and [QP.Commit], that posts it and waits for it; [QP.Do]
// does so for a list of work requests. [QP.Remote] makes an io.ReaderAt and io.WriterAt of
// the peer's memory. To reach memory of the peer one needs its [RemoteBuffer]: the owner
// makes it with [MR.Advertise] or [MW.Advertise] and sends it as private data or in a Send.
//
// The completion of a blocking helper never appears on a CQ, so helpers and posted work may
// be mixed on one QP, in the order in which they are posted. Where the queue is full a helper
// waits for a slot under its context; a slot is free when the helper that has it is done, or
// when the completion of posted work has been polled: if no goroutine polls, the helper waits
// until the context ends. A context that ends stops the waiting and not the work request: its
// memory stays the QP's until it is done, at the latest when the QP has ended (see
// [QP.Done]), and [MR.Close] waits for it. The error is then the context's. Before the QP is
// established, in Setup, a helper fails. A call that need not block succeeds even if its
// context has already ended.
//
// An RDMA Write completes when the data has been handed to the network, as RFC 5040 says.
// That it has been placed is known when a later RDMA Read completes, or by a message of the
// peer. A receive completes when its message, and everything that the peer sent before it,
// has been placed. There is no order between QPs.
//
// A message that finds no receive posted waits for [QPConfig].RNRWait, 30 s by default,
// during which nothing is read from the connection; then the stream ends. EventNoReceive
// reports the wait after its first second.
//
// # Names in libibverbs and librdmacm
//
// A program for libibverbs and librdmacm is ported by this table. Names in parentheses are
// those of the Linux kernel's verbs, where user space has none.
//
//	Open, RNIC.Close             ibv_open_device, ibv_close_device
//	RNIC.Limits                  ibv_query_device
//	RNIC.Events                  ibv_get_async_event, rdma_get_cm_event
//	RNIC.AllocPD, PD.Close       ibv_alloc_pd, ibv_dealloc_pd
//	PD.RegisterMR, MR.Close      ibv_reg_mr, ibv_dereg_mr
//	PD.AllocMR                   (ib_alloc_mr)
//	PD.AllocMW, MW.Close         ibv_alloc_mw with IBV_MW_TYPE_2, ibv_dealloc_mw
//	RNIC.CreateCQ, CQ.Close      ibv_create_cq, ibv_destroy_cq
//	CQ.Resize                    ibv_resize_cq
//	CQ.Poll                      ibv_poll_cq
//	CQ.Wait, CQ.WaitSolicited    ibv_req_notify_cq, ibv_get_cq_event, ibv_poll_cq
//	PD.CreateSRQ, SRQ.Close      ibv_create_srq, ibv_destroy_srq
//	SRQ.PostRecv                 ibv_post_srq_recv
//	SRQ.SetLimit                 ibv_modify_srq with IBV_SRQ_LIMIT
//	RNIC.Dial                    rdma_resolve_addr, rdma_resolve_route, rdma_create_qp, rdma_connect
//	RNIC.Listen                  rdma_bind_addr, rdma_listen
//	Listener.Accept              rdma_get_request
//	ConnRequest.Accept           rdma_create_qp, rdma_accept
//	ConnRequest.Reject           rdma_reject
//	QP.PostSend, QP.PostRecv     ibv_post_send, ibv_post_recv
//	QP.State                     ibv_query_qp
//	QP.Drain                     (ib_drain_sq)
//	QP.Close                     rdma_disconnect, rdma_destroy_qp
//	QP.Abort                     ibv_modify_qp to IBV_QPS_ERR, rdma_destroy_qp
//	QP.Send, QP.Recv             rdma_post_send, rdma_get_send_comp; rdma_post_recv, rdma_get_recv_comp
//	QP.RDMAWrite, QP.RDMARead    rdma_post_write, rdma_post_read, rdma_get_send_comp
//
//	OpSend                       IBV_WR_SEND
//	OpSendInvalidate             IBV_WR_SEND_WITH_INV
//	OpRDMAWrite                  IBV_WR_RDMA_WRITE
//	OpRDMAWriteImm               IBV_WR_RDMA_WRITE_WITH_IMM
//	OpRDMARead                   IBV_WR_RDMA_READ
//	OpRDMAReadInvalidate         (IB_WR_RDMA_READ_WITH_INV)
//	OpImmediate                  IBV_WR_SEND_WITH_IMM without octets
//	OpFetchAdd                   IBV_WR_ATOMIC_FETCH_AND_ADD
//	OpCompareSwap                IBV_WR_ATOMIC_CMP_AND_SWP
//	OpLocalInvalidate            IBV_WR_LOCAL_INV
//	OpBind                       IBV_WR_BIND_MW
//	OpRegister                   (IB_WR_REG_MR)
//	Unsignaled                   not IBV_SEND_SIGNALED
//	Solicited                    IBV_SEND_SOLICITED
//	ReadFence                    IBV_SEND_FENCE
//	SendWR.Inline                IBV_SEND_INLINE
//
// An STag is what libibverbs calls lkey and rkey. [PD.RegisterBuffer], [QP.Commit] and OpSwap
// have no counterpart there.
//
// # Memory
//
// What is given to RegisterMR may be read or written by the peer at any moment that its
// rights allow; a completion is the synchronisation point. What a work request names is the
// QP's until its completion, even if the context of a helper that posted it has ended, and
// what was being moved when a QP ended is indeterminate.
//
// The source of a Send or RDMA Write must not change before its completion: where CRCs are in
// use the peer would see a broken digest and end the stream. Sources that a peer may write
// to, itself or through a window, and what a peer reads, may change at any time: with CRCs
// they are copied first.
//
// The sink of an RDMA Read must not change before its completion either: octets are verified
// where they are to stay, and one that other code of this process writes there meanwhile
// looks like a broken digest. Sinks of several Reads of one QP may overlap, and a sink that a
// peer may write to is filled by way of a copy.
//
// An STag is dead as soon as it is invalidated, whichever way: by [MR.Invalidate] and
// [MW.Invalidate], by a work request (OpLocalInvalidate, or OpRDMAReadInvalidate for the sink
// of a Read), by the peer (its Send with Invalidate), or, if it is a window's, by the end of
// its QP. None of them waits for a peer, and once it is done nothing is placed any more. The
// peer can invalidate what is its QP's alone and grants it something: windows, and regions
// with [MROptions].QP. WC.STag tells which it was, and a program that was promised one checks
// it. A region is closed after its windows. Regions may overlap, each with an STag, rights
// and a life of its own; so there are no shared regions besides.
//
// # Atomic operations
//
// The peer's integer is changed by sync/atomic, so code of that process that uses sync/atomic
// on it takes part; plain loads and stores, and RDMA Reads and Writes, may come in between
// (RFC 7306 section 5). In a [Buffer], too, the integer is in the byte order of the host, and
// the atomic operations of one RNIC take turns. Atomic operations count against the ORD and
// IRD together with RDMA Reads, and are done in the order in which they were posted, each
// when its answer and those of all Reads before it have been made.
//
// # Extensions
//
// Immediate Data and atomic operations are those of RFC 7306. The applications have to tell
// each other whether the peer knows them, in the private data for example (RFC 7306 section
// 1.1): [QP.Extensions] is what to tell, [QP.PeerExtensions] what is known of the peer. A
// peer that does not know them ends the connection, with an error here that matches
// [ErrUnsupported].
//
// # Durability
//
// With [QPConfig].Commit, [QP.Commit] makes durable what was written to the peer's memory
// before, and [QP.CommitThen] stores eight octets behind that; the peer's program takes no
// part in either. What durable means is chosen by the peer, when it registers the memory:
// [MROptions].Durable, and package commit. A Commit that the media have failed is an error of
// that Commit alone.
//
// # Errors and ends
//
// The first error ends a QP. Where this side found it, a Terminate message tells the peer;
// all work that is not complete is flushed, and everything that the QP answers from then on
// wraps net.ErrClosed and the first cause, which errors.As finds: a [TerminateError] of
// either direction, or an error of the connection.
//
// [QP.Close] refuses new posts, finishes what is queued and the peer's Reads, ends the
// connection, and flushes the receive queue, within Config.CloseTimeout. The peer's QP then
// ends too, with an error if its send queue is not empty. A message that it sends behind the
// end is thrown away and makes the end an error here, so the applications should agree on the
// end first. [QP.Terminate] tells the peer that this side cannot go on; [QP.Abort] does not
// wait. When any of them returns, or the channel of [QP.Done] is closed, everything is
// completed. [QP.Drain] waits for what was sent and ends nothing.
//
// A program ends with [RNIC.Shutdown], which closes all QPs gracefully, within a context;
// [RNIC.Close] aborts everything, so that the last messages may be lost, and waits for all
// goroutines. Waiting on a CQ ends with its QP or its RNIC. [RNIC.Events] reports how a QP
// has ended, and other things that no completion tells.
//
// # Concurrency
//
// All methods of all objects may be called from any goroutine. Posting never waits for the
// network; the helpers, [CQ.Wait], Close, Shutdown and Drain block. Over TCP
// on Linux a goroutine that waits for a completion of a QP usually reads from the connection
// itself, and an idle connection has no goroutine and no buffer; elsewhere each connection
// has a goroutine that reads (see Platforms).
//
// # Limits
//
// [Limits] bounds what one RNIC holds: objects, depths of queues, SGEs, inline octets, Reads
// and atomic operations outstanding, and connections in set-up. What would go beyond is refused
// with an error that matches [ErrLimit]. The depths of a QP are 128 work requests in each
// queue and an IRD and ORD of 16 unless [QPConfig] says otherwise. A message has at most 2^32-1
// octets ([QP.MaxSizes]), private data 248, or 508 with MPAOptions.LargePrivateData. A QP serves
// one connection.
//
// # Security
//
// A peer can reach nothing but regions of the QP's PD, octet-exactly, within their
// rights; an STag is hard to guess, but it is no secret key: RFC 5042 wants peers
// that do not trust each other in different PDs, or regions bound to one QP
// ([MROptions].QP). Data is protected against corruption by CRC32c, not against an
// attacker on the path: use QPConfig.TLS and ListenConfig.TLS, or IPsec, which the
// host provides (RFC 5042 section 5; RFC 7146). Code of the same process is not kept
// apart by PDs; Limits keep it from taking more than its share.
//
// # Platforms
//
// The package runs wherever Go has TCP; it is tested on Linux and built for macOS and
// Windows, too. On Linux a *net.TCPConn is driven by system calls of the package's own,
// and one epoll set watches the idle connections of an RNIC. Elsewhere, over TLS, over any
// other net.Conn, and with the build tag purego on Linux, data goes through the methods of the
// net.Conn, which costs throughput and a goroutine for each connection. Network "sctp" needs
// the SCTP of the Linux kernel and fails with ErrUnsupported elsewhere; "sctp+udp" is SCTP in
// user space, on every system. CRC32c and large copies use the vector instructions of amd64
// where the processor has them.
//
// # Packages
//
// The package stands on rdmap, ddp, mpa, stag and transport, one for each layer of
// RFC 4296; each can be used by itself. Package commit has RDMA Commit and the durable
// backings.
package iwarp
