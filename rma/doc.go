// Package rma implements operations on memory of a peer in the manner of 1RMA (Singhvi et al., SIGCOMM
// 2020):
//
//   - each operation is authenticated and encrypted under a key of its region;
//   - its octets come only when they were asked for, within a window;
//   - it ends in bounded time, with an outcome that tells where it failed.
//
// A [Server] has regions, each with a number, and serves them on any number of connections:
//
//	server := rma.NewServer(&rma.ServerConfig{PD: pd})
//	region, err := server.Register(7, rma.NewMemory(octets), nil)
//	err = server.Serve(ctx, qp) // until the connection ends
//
// A [Client] opens regions by their numbers, and does operations on them, either through a [Portal],
// which has a fixed number of slots and never waits, or through an [Executor], which moves any number
// of octets:
//
//	client, err := rma.NewClient(ctx, qp, &rma.ClientConfig{PD: pd})
//	handle, err := client.Open(ctx, 7, rma.MayRead|rma.MayWrite)
//	portal, err := client.Portal(16)
//	n, err := rma.NewExecutor(portal).WriteAt(ctx, handle, octets, 0)
//
// Both sides may be on the same connection (ClientConfig.Server).
//
// # The connection
//
// It is a QP of package iwarp, which belongs to this package from NewClient or Serve on, with its CQ.
// Both queues complete on one CQ, and their depths are those of [Depths]; [Prepare] sets all that. Keys come from the
// authenticated set-up: of package cm, or of TLS 1.3 where the client has a certificate. Without one
// only operations without keys are possible, if both sides set Insecure: their octets are then
// neither encrypted nor authenticated.
//
// Operations of one QP share a stream of TCP, in which one can delay the others. Use several QPs for
// operations that must not.
//
// # Keys
//
// A region has a key that never leaves the server. Clients get keys that are derived from it, for
// their identity and instance and for each right. [Region.Rekey] replaces it, at no more cost than that
// of a write: operations on that region with older keys fail with [ErrRemoteAuth] and StaleEpoch, after
// a grace if there is one, until the client has opened the region again. No connection is affected.
//
// No STag of a region is ever on the wire. Those that are name memory of this package that is used for
// one operation or, without keys, the buffer of a write or of a direct read as long as that lasts.
//
// # Outcomes
//
// Errors in completions are of type [*OpError], and match ErrRemoteAuth, ErrNACK, ErrTimeout,
// ErrDispatchTimeout, ErrBounds, ErrRemote, ErrConflict or net.ErrClosed. Only after ErrTimeout and
// ErrRemote a write may have had an effect: see Outcome.NoEffect. After ErrTimeout it has had it by
// then, or never will: the server stops before the client does. There are no synchronised clocks for
// that; the rates of both must not differ by more than the guard (ServerConfig.Guard). A process that
// is stopped in the middle of a copy can break this, and a Buffer other than Memory whose WriteAt takes
// longer than the guard, which is counted and recorded as a late commit.
//
// Nothing is repeated by itself, but for operations of an Executor that were refused because the region
// has another key.
//
// # Windows
//
// A [Solicitor] bounds the octets that are on their way to this side: those of reads of its clients,
// and of writes that its servers have pulled. A read that does not get its place in the window of the
// client in time fails with ErrDispatchTimeout, and a write that does not get its place in that of the
// server with ErrNACK. Below all this TCP has a congestion control of its own.
//
// # Concurrency
//
// All methods of all types may be called from any goroutine, but Executor.SetAutoReopen. Each connection
// has one goroutine, which calls the methods of Buffers and Authorize: what they do delays the operations
// of the connection.
package rma
