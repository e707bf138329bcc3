// Package lockorder defines the order in which one goroutine may lock several mutexes, and a [Mutex]
// that has a rank in that order. The order of the verbs and all layers below them is defined in order.go only.
//
// A normal build ignores ranks: a [Mutex] is a sync.Mutex. With the build tag lockorder,
//
//	go test -tags lockorder ./...
//
// it records which mutexes each goroutine holds. Locking a mutex whose rank is not below the ranks
// of all mutexes that the goroutine holds panics. The panic names both mutexes and where each was
// locked. So a test finds two goroutines that lock the same mutexes in different orders even if it
// runs only one of them, and without a deadlock.
//
// # The order
//
// From the outside to the inside: the PD, the registry of the RNIC, the QP, its stream, the Solicitor, its
// receive queue, the SRQ, the CQ; then the connection below the verbs, the sweeper, the poller; the STag
// table, which every layer uses; and the leaves, under which nothing is locked. A lock may be held while a
// layer below is called, but never while a layer above is. Completions are put into the CQ with the
// stream's lock held. Events are put into their mailbox, a leaf from which the application takes them, with
// any lock held. But the application's functions are called, and messages that have waited for a receive
// are resumed, only after unlocking. Package qpconn documents what is called under the lock of a connection.
//
// A sync.Mutex without a rank guards code that stands alone: the test doubles of connections in package transport and
// internal/recordpipe, the SCTP back ends, the backing of package commit. The packages above the verbs, which are cm,
// rma, rpcrdma, rsocket, metrics and monitor, use only such mutexes, and lock them before any mutex of the verbs. The
// mutexes of rma nest: their order is documented at the type conn in rma/conn.go.
package lockorder
