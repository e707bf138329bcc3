// Package solicit bounds the octets that a side has asked for and that have not arrived: the
// window over solicited inbound transfers of 1RMA (Singhvi et al., SIGCOMM 2020). However many
// peers there are, no more than the window is on its way to this side at any time, so that the
// answers of many peers do not overflow a queue in front of it (incast).
//
// A program that uses the verbs does not call this package: it gives its QPs an
// iwarp.Solicitor, which has such a window. docs/flow-control.md says when and which size. This
// package is for other protocols in which one side asks and the other sends.
//
// It has no goroutine, no clock and no lock. The caller passes the time, and calls each object
// from one goroutine at a time:
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
// [Window.Enqueue] takes an operation with the number of octets that it will bring, without headers;
// fewer than 64 count as 64. It waits in the queue of its class until [Window.Next] grants it; then it may be
// issued, and [Window.Release] gives its octets back when it has ended. Each call of Enqueue,
// Release, Cancel and Expire may make the next grants possible: call Next until it reports false.
//
//   - The octets that are granted never exceed the size of the window. An operation is granted when
//     all of it fits, once.
//   - The two classes are queues of their own, and share the window by weight, or strictly. One
//     without work leaves all to the other. What is next stays next until it fits, so that large
//     operations are not overtaken for ever by small ones; only where Latency is strictly first it
//     overtakes Bulk.
//   - An operation that has waited for longer than the dispatch timeout of its class is not granted
//     any more: [Window.Expire] reports it, and [Window.Deadline] says when. Nothing was sent for it.
//   - A peer that refuses an operation gives its octets back at once (Release with [Nack]). One that
//     does not answer in time may still send them: [Window.Hold] keeps them until Release.
//   - An id names one operation for ever. Calls with the id of one that has ended are counted and
//     ignored.
//
// # Size
//
// The size is fixed, or 1.25 times bandwidth times delay as they are measured: the delay is the
// least from a grant to its end in the last 10 s, of operations of 4 KiB at most where there are
// any, and the bandwidth the best of the last 10 delays. It moves once in each delay, by a factor of
// 2 up or 0.75 down at most. It never is less than the largest operation that waits, nor less than
// what is granted: a window that shrinks does so as grants return.
//
// A window that is always full has a queue of its own in all that it measures. So each 10 s without
// a delay as short as the least it is halved, down to Config.Min, for three delays, in which the queue
// drains. Without that it would grow by a quarter every 10 s.
//
// # Pacer
//
// A [Pacer] bounds the operations in flight to one peer, by two delays which it keeps apart: the one
// before the grant is congestion on this side, and bounds the queue ([Pacer.Depth]); the one after
// it is congestion on the path or at the peer, and bounds what is issued ([Pacer.MayIssue]).
//
// Flows that share a link find equal shares. On links of 1 to 40 Gb/s with delays of 1 and 10 ms,
// eight of them are within 20 percent of theirs 50 delays after the rate was halved or doubled, also
// if they began one after the other. Where eight operations are more than the link holds in its
// delay, flows that begin late need some multiples of 10 s for that, for the least delay that they
// measure at first is that of the others' queue.
//
// TCP has a congestion control of its own below all this, and its send queue is part of the delay.
// This is pacing above TCP.
package solicit
