// Package qpconn drives the connection of a queue pair: it receives and sends, and it ends the
// connection. It uses an rdmap.Stream, the LLP below it, and the [Owner] above. It does not
// know the verbs.
//
// # Goroutines
//
// An idle [Conn] has no goroutine. An arbiter grants two rights, one to receive and one to
// send, each to one goroutine at a time; arbiter.go describes the states. These goroutines
// use the rights:
//
//   - A waiter, in [Conn.Wait], receives while it waits.
//   - The reader is started when input arrives and no goroutine waits, and when a message that
//     has waited for a receive is tried again. It ends when no more input has arrived for a while.
//   - A poster, in [Conn.Post], sends what it has queued, but never waits for the network.
//   - The writer is started when sending has to wait for the network, or when more than one
//     share is to be sent and no other goroutine is available for it.
//
// One more goroutine closes or aborts the LLP, at the end, without a right. The method of a net.Conn
// of the program may not return, so no other goroutine waits for it. Likewise one ends our half after
// the peer has ended its half.
//
// # Locks
//
// Each Conn has one mutex. It is held for one step of the arbiter, and for the actions that
// must precede the next step: to arm or disarm the LLP, which takes the mutex of a
// transport.Poller. So the mutex may be taken while any lock of the layers above is held.
// [Conn.Post], [Conn.Fail] and the other methods that end a connection call the [Owner], so
// they must be called with no lock held. [Conn.Nudge] and [Conn.Resume] may be called with
// any lock held that is before Conn in package lockorder.
package qpconn
