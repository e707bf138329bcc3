// Package qpconn drives the connection of a queue pair: it receives, sends, and ends it. It
// knows an rdmap.Stream, an LLP below that, and an [Owner] above, and nothing of verbs.
//
// # Who works
//
// A [Conn] has no goroutine while nothing happens. Two rights, which an arbiter gives out,
// say which goroutine may receive and which one may send: see arbiter.go for the states.
// These goroutines use them:
//
//   - A waiter, in [Conn.Wait], receives for itself while it waits.
//   - The reader is started when there is input and nobody waits. It ends when there has
//     been nothing more for a while.
//   - A poster, in [Conn.Post], sends what it has queued, but never waits for the network.
//   - The writer is started where sending must wait, or where there is more than one share to
//     send and no other goroutine at work.
//
// # Locks
//
// Each Conn has one mutex. A step of the arbiter, and what must be done before the next one,
// is all that is done under it; what is done is to arm or disarm the LLP, which takes the
// mutex of a transport.Poller. So the mutex may be taken with any lock of the layers above
// held. [Conn.Post], [Conn.Fail] and the other methods that end a connection call the
// [Owner], and are called with no lock held; [Conn.Nudge] and [Conn.Resume] may be called
// with any.
package qpconn
