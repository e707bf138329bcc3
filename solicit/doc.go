// Package solicit bounds the octets that a side has requested and not yet received: the window over
// solicited inbound transfers of 1RMA (Singhvi et al., SIGCOMM 2020). However many peers there are,
// the octets in flight to this side never exceed the window, so that the answers of many peers do
// not overflow a queue in front of it (incast).
//
// A program that uses the verbs does not call this package: it gives its QPs an iwarp.Solicitor,
// which contains such a window. docs/flow-control.md describes when to use one, and of which size.
// This package is for other protocols in which one side requests data and the other sends it.
//
// The package has no goroutine, no clock and no lock. The caller passes the time, and calls each
// object from one goroutine at a time:
//
//	window := solicit.New(solicit.Config{Fixed: 4 << 20}, time.Now())
//	id, err := window.Enqueue(time.Now(), solicit.Bulk, 64<<10) // 64 KiB will arrive
//	for grant, ok := window.Next(time.Now()); ok; grant, ok = window.Next(time.Now()) {
//		issue(grant.ID)
//	}
//	window.Release(time.Now(), id, solicit.OK) // when they have arrived
//
// # Window
//
// [Window.Enqueue] takes an operation and the number of octets that it will bring, without headers;
// fewer than 64 octets count as 64. The operation waits in the queue of its class until [Window.Next]
// grants it. Then it may be issued; when it has ended, [Window.Release] returns its octets. Each call of
// Enqueue, Release, Cancel and Expire may make more grants possible: call Next until it reports false.
//
//   - The granted octets never exceed the size of the window. An operation is granted once, when all
//     of it fits.
//   - Each of the two classes has its own queue. They share the window by weight, or strictly. A class
//     without work leaves the window to the other. The operation that is next stays next until it fits,
//     so that small operations do not overtake a large one for ever; only if Latency is strictly first
//     does it overtake Bulk.
//   - An operation that has waited longer than the dispatch timeout of its class is not granted any
//     more: [Window.Expire] reports it, and [Window.Deadline] says when. Nothing was sent for it.
//   - If a peer refuses an operation, its octets return at once (Release with [Nack]). A peer that does
//     not answer in time may still send them: [Window.Hold] keeps them until Release.
//   - An id identifies one operation for ever. Calls with the id of an operation that has ended are
//     counted and ignored.
//
// # Size
//
// The size is fixed, or 1.25 times the measured product of bandwidth and delay. The delay is the least
// from a grant to its end in the last 10 s, of operations of at most 4 KiB if there are any. The
// bandwidth is the best of the last 10 delays. The size changes once per delay, at most by a factor of 2
// up or 0.75 down. It is never less than the largest operation that waits, nor less than the granted
// octets: a window shrinks only as grants return.
//
// A window that is always full measures its own queue as part of each delay. So whenever 10 s pass
// without a delay as short as the least, the window is halved, down to Config.Min, for three delays, in
// which the queue drains. Otherwise it would grow by a quarter every 10 s.
//
// # Pacer
//
// A [Pacer] bounds the operations in flight to one peer by two separate delays. The delay before the
// grant shows congestion on this side, and bounds the queue ([Pacer.Depth]). The delay after the grant
// shows congestion on the path or at the peer, and bounds the operations issued ([Pacer.MayIssue]).
//
// Flows that share a link converge to equal shares. On links of 1 to 40 Gb/s with delays of 1 and 10 ms,
// eight flows are within 20 percent of their shares 50 delays after the rate was halved or doubled, even
// if they began one after the other. If eight operations are more than the link holds in its delay,
// flows that begin late need some multiples of 10 s for that, because the least delay that they measure
// at first includes the others' queue.
//
// TCP has its own congestion control below all this, and its send queue is part of the delay. This
// package only paces above TCP.
package solicit
