// Package lockorder holds the order in which one goroutine may lock several mutexes, and a [Mutex]
// that has a rank in it. That of the engine, the verbs and what is below them, is in order.go, and nowhere else.
//
// A normal build knows nothing of ranks: a [Mutex] is a sync.Mutex. With the build tag lockorder,
//
//	go test -tags lockorder ./...
//
// it keeps, for each goroutine, what that goroutine holds. To lock a mutex whose rank is not below
// those of all mutexes that the goroutine holds is a panic, which names both, and where each was
// locked: so that two goroutines that lock the same mutexes in different orders are found without
// the deadlock, by a test that runs only one of them.
//
// # The order
//
// From the outside to the inside: the PD, the registry of the RNIC, the QP, its stream, the Solicitor, its
// receive queue, the SRQ, the CQ; then the connection below the verbs, the sweeper, the poller; the table
// of STags, which every layer uses; and the leaves, under which nothing is locked. A lock is held while a
// layer below is called, and never while one above is: completions are put into the CQ with the lock of
// the stream held, and events into their mailbox, a leaf from which the application takes them, with any
// lock held; but the application's functions are called, and messages resumed that have waited for a
// receive, after unlocking. What is called under the lock of a connection is written in package qpconn.
//
// sync.Mutex without a rank is for what stands alone: the doubles of connections in package transport and
// internal/recordpipe, the back ends of SCTP, the backing of package commit. The packages above the verbs, which are cm,
// rma, rpcrdma, rsocket, metrics and monitor, have only such mutexes, and lock them before those of the verbs. Those of rma
// nest: their order is at the type conn in rma/conn.go.
package lockorder
