// Package rma implements operations on memory of a peer in the manner of 1RMA (Singhvi et al., SIGCOMM
// 2020):
//
//   - each operation is authenticated and encrypted under a key of its region;
//   - its data arrive only on request, within a window;
//   - it ends in bounded time, with an outcome that shows where it failed.
//
// A [Server] holds numbered regions and serves them on any number of connections:
//
//	server := rma.NewServer(&rma.ServerConfig{PD: pd})
//	region, err := server.Register(7, rma.NewMemory(octets), nil)
//	err = server.Serve(ctx, qp) // until the connection ends
//
// A [Client] opens regions by their numbers and operates on them, either through a [Portal], which has
// a fixed number of slots and posts without waiting, or through an [Executor], which moves any number
// of octets:
//
//	client, err := rma.NewClient(ctx, qp, &rma.ClientConfig{PD: pd})
//	handle, err := client.Open(ctx, 7, rma.MayRead|rma.MayWrite)
//	portal, err := client.Portal(16)
//	n, err := rma.NewExecutor(portal).WriteAt(ctx, handle, octets, 0)
//
// One connection can carry both roles: see ClientConfig.Server.
//
// # The connection
//
// A connection is a QP of package iwarp. From NewClient or Serve on, the QP and its CQ belong to this
// package. Both queues complete on one CQ and have the depths that [Depths] returns; [Prepare] sets all
// this. Keys come from an authenticated set-up: that of package cm, or TLS 1.3 if the client has a
// certificate. Otherwise only operations without keys are possible, and only if both sides set Insecure:
// their octets are neither encrypted nor authenticated.
//
// Operations of one QP share a TCP stream, in which one can delay the others. Use several QPs for
// operations that must not delay one another.
//
// # Keys
//
// The key of a region never leaves the server. Each client gets keys derived from it, one for each
// right, which depend on the client's identity and instance. [Region.Rekey] replaces the region's key at
// no more than the cost of a write. Operations on that region with older keys then fail with
// [ErrRemoteAuth] and StaleEpoch, after the grace if there is one, until the client has opened the region
// again. No connection is affected.
//
// A region's STag never appears on the wire. The STags that do appear name memory that this package uses for
// a single operation, or, without keys, the caller's buffer for the duration of a write or a direct read.
//
// # Outcomes
//
// Errors in completions are of type [*OpError], and match ErrRemoteAuth, ErrNACK, ErrTimeout,
// ErrDispatchTimeout, ErrBounds, ErrRemote, ErrConflict or net.ErrClosed. A failed write may have had an
// effect only after ErrTimeout and ErrRemote: see Outcome.NoEffect. After ErrTimeout, a write without
// effect never takes effect later: the server stops before the client does. This needs no synchronised
// clocks, but the clocks of the two sides must not drift apart by more than the guard (ServerConfig.Guard)
// during a write. A process that is stopped in the middle of a copy can break the rule, and so can a
// Buffer other than Memory whose WriteAt takes longer than the guard. The server counts and records such
// a copy as a late commit.
//
// Only an Executor repeats operations: those that were refused because the region has a new key.
//
// # Windows
//
// A [Solicitor] bounds the octets in flight to this side: the reads of its clients, and the writes that
// its servers have pulled. A read that the client's window does not admit in time fails with
// ErrDispatchTimeout. A write that the server's window does not admit in time fails with ErrNACK. TCP
// applies its own congestion control below this.
//
// # Concurrency
//
// All methods of all types may be called from any goroutine, except Executor.SetAutoReopen. Each
// connection has one goroutine that calls the methods of Buffers and Authorize. The time that they take
// delays the other operations of that connection.
package rma
