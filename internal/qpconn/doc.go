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
//   - The reader starts when input arrives while no goroutine waits, and when a message that
//     waited for a receive is tried again. It ends when no more input has arrived for a while.
//   - A poster, in [Conn.Post], sends what it has queued, but never waits for the network.
//   - The writer starts when sending has to wait for the network, or when more than one share
//     remains and no other goroutine is available to send it.
//
// At the end, one more goroutine closes or aborts the LLP without holding a right. No other goroutine
// waits for it, because a method of the application's net.Conn may not return. For the same reason a
// separate goroutine ends our half after the peer has ended its half.
//
// # Locks
//
// Each Conn has one mutex. It is held for one step of the arbiter, and for the actions that
// must precede the next step: arming or disarming the LLP, which takes the mutex of a
// transport.Poller. So the mutex may be taken while any lock of the layers above is held.
// [Conn.Post], [Conn.Fail] and the other methods that end a connection call the [Owner], so
// they must be called with no lock held. [Conn.Nudge] and [Conn.Resume] may be called while
// holding any lock that precedes Conn in package lockorder.
package qpconn
