// Package iwarp implements iWARP, remote direct memory access (RDMA) over TCP and SCTP, in
// user space. It uses no cgo and needs no special hardware.
//
// With RDMA a program reads and writes registered memory, or a file, of another host, without
// running code of a program there. The protocols are RDMAP, DDP and MPA (RFC 5040, 5041, 5043,
// 5044, 6581 and 7306). The package interoperates with Linux's soft-iWARP driver (siw) and
// with itself, and is designed to interoperate with iWARP network cards.
//
// Every verb has an example in its documentation. In the examples must and check panic on an
// error, and pair and joined connect two QPs of one process.
//
// # From Open to Shutdown
//
// Both sides open an RNIC, the counterpart of an RDMA network card, and register the memory
// that takes part. The rights say what a peer may do there:
//
//	rnic, err := iwarp.Open(nil)
//	pd, err := rnic.AllocPD()
//	mr, err := pd.RegisterMR(memory, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
//
// One side listens, and tells each peer where the memory is, here in the private data of the
// connection set-up:
//
//	listener, err := rnic.Listen(ctx, "tcp", ":7471", nil)
//	request, err := listener.Accept(ctx)
//	where, err := mr.Advertise(0, len(memory)).AppendBinary(nil)
//	qp, err := request.Accept(ctx, &iwarp.QPConfig{PD: pd, PrivateData: where})
//
// The other side connects. From then on it reads and writes that memory, and no code of the
// listening program runs for it:
//
//	qp, err := rnic.Dial(ctx, "tcp", "192.0.2.1:7471", &iwarp.QPConfig{PD: pd})
//	var remote iwarp.RemoteBuffer
//	err = remote.UnmarshalBinary(qp.PrivateData())
//	err = qp.RDMAWrite(ctx, remote.Slice(0, 4096), mr.Slice(0, 4096))
//	err = qp.RDMARead(ctx, mr.Slice(0, 4096), remote.Slice(0, 4096))
//
// Either side may also send messages, for which the other has posted memory: [QP.Send] and
// [QP.Recv]. A program that has much to do posts work requests and takes their completions
// itself, instead of waiting for each: [QP.PostSend], [CQ.Poll].
//
// At the end, one call completes the outstanding work of all connections and ends them:
//
//	err = rnic.Shutdown(ctx)
//
// The sections below say what each object is, and what a program may rely on.
//
// # Objects
//
// An [RNIC], created by [Open], owns all other objects. A process usually has one.
//
// A [PD] (protection domain) groups memory regions and QPs: a QP can access only regions of
// its own PD.
//
// An [MR] (memory region) is memory that a peer can access. It is identified by an STag
// (steering tag), a number of 32 bits that the peer names in each access.
// [PD.RegisterMR] registers memory; [PD.RegisterBuffer] registers a file or anything else with
// ReadAt and WriteAt methods. Two kinds of STag are enabled and invalidated by work requests
// of a QP: that of an [MW] (memory window), created by [PD.AllocMW], which grants access to a
// part of a region, and that of a region created by [PD.AllocMR], which gets its memory by
// fast registration.
//
// A [QP] (queue pair) is a connection with a send queue and a receive queue. Work requests in
// these queues say what to do; their memory is given by SGEs (scatter/gather elements), each a
// part of a region.
//
// A [CQ] (completion queue) receives the completions of the work requests of one or more QPs.
//
// An [SRQ] (shared receive queue) holds receives for the messages of several QPs: the first
// message to arrive takes the oldest receive.
//
// # Connections
//
// [RNIC.Dial] creates the QP of the initiator; [RNIC.Listen], [Listener.Accept] and
// [ConnRequest.Accept] create that of the responder. [RNIC.Client] and [RNIC.Server] create a
// QP from a net.Conn.
//
// [QPConfig].Setup runs while the QP is Idle, before this side sends its MPA Request or Reply.
// Receives posted there, and memory registered there, are in place before the first message
// can arrive. Send work requests posted there are sent when the QP is established.
//
// A responder may send only after it has received the first message of the initiator (RFC 5044
// section 7.1.2); work that it posts earlier waits. By default the initiator's library sends
// an empty message first, so that either application may send first (peer to peer, RFC 6581
// section 9.2). With MPAOptions.ClientServer, and with peers that support only revision 1, the
// initiator's application must send first.
//
// # Work requests and completions
//
// Work requests are posted with [QP.PostSend], whose operations [SendWR] lists, and with
// [QP.PostRecv] or [SRQ.PostRecv]. Posting never blocks. Each work request ends with a [WC]
// (work completion) on a CQ; those of one queue complete in the order in which they were
// posted. An Unsignaled work request has a WC only if it fails.
//
// Each operation has a blocking helper, such as [QP.Send], [QP.Recv], [QP.RDMAWrite],
// [QP.RDMARead] and [QP.Commit], which posts a work request and waits for its completion.
// [QP.Do] does so for a list of work requests. [QP.Remote] returns an io.ReaderAt and
// io.WriterAt for memory of the peer. To access memory of the peer a program needs a
// [RemoteBuffer]: the owner of the memory creates it with [MR.Advertise] or [MW.Advertise],
// and sends it as private data or in a Send.
//
// The completion of a blocking helper never appears on a CQ, so helpers and posted work may be
// mixed on one QP; they are executed in the order in which they are posted. If the queue is
// full a helper waits for a slot, under its context. A slot becomes free when the helper that
// uses it is done, or when the completion of posted work has been polled; if no goroutine
// polls, the helper waits until its context ends. The end of a context ends the wait, not the
// work request: its memory belongs to the QP until the work request is done, at the latest
// when the QP has ended (see [QP.Done]), and [MR.Close] waits for it, unless it is a receive. The helper then returns
// the error of the context. Before the QP is established, in Setup, a helper fails. A call
// that need not block succeeds even if its context has already ended; each call that sends may
// block over TLS, over network "pipe" and over any other net.Conn that is driven by its methods.
//
// An RDMA Write completes when its data has been handed to the network, as RFC 5040 specifies.
// To know that the data has been placed, wait for the completion of a later RDMA Read, or for
// a message of the peer. A receive completes when its message, and everything that the peer
// sent before it, has been placed. Operations of different QPs are not ordered.
//
// A message that finds no receive posted waits for up to [QPConfig].RNRWait, 30 s by default.
// Meanwhile nothing is read from the connection. Then the stream ends. EventNoReceive reports
// the wait after its first second. With QPConfig.StallWait EventNoProgress reports work of this
// side that makes no progress, for example because the peer reads nothing.
//
// # Memory
//
// The peer may read or write memory registered with RegisterMR at any time, as the rights
// allow; a completion is the synchronisation point. Memory that a work request names belongs
// to the QP until its completion, even if the context of the helper that posted it has ended.
// After the end of a QP, the contents of memory that was being transferred are indeterminate.
//
// The source of a Send or RDMA Write must not change before its completion: where CRCs are in
// use, the peer could find a wrong CRC and end the stream. Two kinds of memory may change at
// any time: sources that a peer may write to, directly or through a window, and memory that a
// peer reads. With CRCs they are copied first.
//
// The sink of an RDMA Read must not change before its completion either: the CRC is verified
// after the octets have been placed, so a change by other code of this process looks like a
// wrong CRC. The sinks of several Reads of one QP may overlap. Data for a sink that a peer may
// write to is copied after verification.
//
// An STag becomes invalid by [MR.Invalidate] and [MW.Invalidate], by a work request
// (OpLocalInvalidate, or OpRDMAReadInvalidate for the sink of a Read), by the peer (its Send
// with Invalidate), or, for a window, by the end of its QP. None of these waits for a peer,
// and when it is done nothing more is placed through the STag. The peer can invalidate only
// windows, and regions with [MROptions].QP, that belong to its QP and grant it some access.
// WC.STag reports which one it has invalidated; a program that expects a certain STag must
// check this. Close a region after its windows. Regions may overlap; each has its own STag,
// rights and lifetime, so there is no separate object for a shared region.
//
// # Atomic operations
//
// The integer in the peer's memory is changed by means of sync/atomic, so code of the peer's
// process that uses sync/atomic on it is synchronised with these operations. Plain loads and
// stores, and RDMA Reads and Writes, are not (RFC 7306 section 5). In a [Buffer], too, the
// integer is in the byte order of the host; the atomic operations of one RNIC on Buffers are
// executed one at a time. Atomic operations and Commits count against the ORD and IRD together
// with RDMA Reads: the ORD is how many this side may have outstanding, and the IRD how many of
// the peer's it serves at a time. Atomic operations are executed in the order in which they were
// posted, each after the responses to all earlier RDMA Reads and atomic operations have been
// generated.
//
// # Extensions
//
// Immediate Data and atomic operations are those of RFC 7306. The applications must tell each
// other whether they support them, for example in the private data (RFC 7306 section 1.1).
// [QP.Extensions] returns what this side supports, [QP.PeerExtensions] what the peer is known
// to support. A peer without support ends the connection, with an error on this side that
// matches [ErrUnsupported].
//
// # Durability
//
// With [QPConfig].Commit, [QP.Commit] makes octets durable that were written to the peer's
// memory before, and [QP.CommitThen] stores eight octets after that. Neither involves the
// peer's program. The peer determines what durable means when it registers the memory, by
// [MROptions].Durable; package commit has implementations. If the peer's media fail, only that
// Commit fails.
//
// # Errors and the end of a QP
//
// The first error ends a QP. If this side has found it, a Terminate message reports it to the
// peer. All incomplete work is flushed. Every error that the QP returns from then on wraps
// net.ErrClosed and, as soon as [QP.Err] returns it, the first cause, which errors.As finds: a
// [TerminateError] of either direction, or an error of the connection.
//
// [QP.Close] refuses new posts, completes the work that is queued and the RDMA Reads of
// the peer, ends the connection, and flushes the receive queue, within
// Config.CloseTimeout. The peer's QP then ends, too, with an error if its send queue is
// not empty. A message that the peer has handed to the network by then is discarded, and
// the QP ends with an error on this side. The peer may not learn of that, so the
// applications should first agree on the end. [QP.Terminate] tells the peer that this side
// cannot continue. [QP.Abort] does not wait for the peer. When one of these methods
// returns, or the channel of [QP.Done] is closed, all work requests have completed.
// [QP.Drain] waits for the work requests that were posted, and ends nothing.
//
// [RNIC.Shutdown] ends all QPs of a program gracefully, within a context. [RNIC.Close] aborts
// everything, so that the last messages may be lost, and waits for all goroutines. A wait on a
// CQ ends with its RNIC, and a wait on the CQ that a QP has made for itself ends with that QP.
// [RNIC.Events] reports the end of a QP, and other events that no completion reports.
//
// # Concurrency
//
// All methods of all objects may be called from any goroutine. Posting never waits for the
// network; the helpers, [CQ.Wait], Close, Shutdown and Drain block. Over TCP on Linux a
// goroutine that waits for a completion of a QP usually reads from the connection itself, and
// an idle connection has neither a goroutine nor a buffer. Otherwise each connection has a
// goroutine that reads (see Platforms).
//
// # Limits
//
// [Limits] bounds the resources of an RNIC: objects, depths of queues, SGEs, inline octets,
// outstanding RDMA Reads, atomic operations and Commits, and connections in set-up. A request that
// exceeds a limit fails with an error that matches [ErrLimit]. By default each queue of a QP
// has 128 work requests, and the IRD and ORD are 16; see [QPConfig]. A message has at most
// 2^32-1 octets ([QP.MaxSizes]), private data 248, or 508 over SCTP and with
// MPAOptions.LargePrivateData. A QP serves one connection.
//
// # Security
//
// A peer can access only regions of the QP's PD, within their bounds and rights. An STag is
// hard to guess but is not a secret key: RFC 5042 requires that peers that do not trust each
// other use different PDs, or regions bound to one QP ([MROptions].QP). CRC32c protects data
// against corruption, not against an attacker on the path: use QPConfig.TLS and
// ListenConfig.TLS, or the IPsec of the host (RFC 5042 section 5; RFC 7146). Package cm
// authenticates peers when they connect (QPConfig.Auth, ListenConfig.Auth). PDs do not
// isolate code within one process; Limits keeps each RNIC from taking more than its share.
//
// # Platforms
//
// The package runs wherever Go has TCP, except on Plan 9. It is tested on Linux, and also built
// for macOS, Windows and FreeBSD. On Linux the package performs its own system calls on a
// *net.TCPConn, and one epoll set watches the idle connections of an RNIC. On other systems, over
// TLS, over any other net.Conn, and with the build tag purego on Linux, it calls the methods of the
// net.Conn, which reduces throughput and takes a goroutine for each connection. Network "sctp"
// requires the SCTP of the Linux kernel and fails with ErrUnsupported elsewhere; "sctp+udp" is
// SCTP in user space, on every system. CRC32c and large copies use the vector instructions of
// amd64 processors where available.
//
// # Names in libibverbs and librdmacm
//
// This table helps to port a program from libibverbs and librdmacm; docs/porting-libibverbs.md
// has every verb, status, flag and event. Names in parentheses are those of the Linux kernel's
// verbs, where user space has none.
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
// # Packages
//
// The package is built on rdmap, ddp, mpa and transport, the layers of RFC 4296, and on stag, the
// regions and their STags; each can be used by itself. Package commit implements RDMA Commit and
// the durable backings, and package solicit the window of a [Solicitor].
//
// Built on this package are
//
//   - cm, which authenticates connections, sets many up at once and keeps them in pools;
//   - rma, whose operations are encrypted and authenticated one by one, under keys that rotate;
//   - rsocket, stream sockets as a net.Conn, for net/http, net/rpc and gRPC;
//   - rpcrdma, the transport of servers and clients of RPC, such as NFS;
//   - metrics, which exports to Prometheus what an RNIC counts ([RNIC.Stats]);
//   - monitor, which shows the connections live, on a web page and as JSON;
//   - tracing, which makes spans of OpenTelemetry.
//
// The directory docs has a tutorial, concepts in pictures, tables for porting, and each error
// with its remedy.
package iwarp
