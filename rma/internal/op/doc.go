// Package op contains the state machines of one-sided operations on one connection. A [Client] is
// the side that issues operations, a [Server] the side that owns the regions. Both may be on the
// same connection; [Message.Role] returns which one a message is for.
//
// The package is pure: it has no goroutine, lock, clock, key or work request. Each method takes
// the time and one event, and appends the [Action]s that its caller performs next to a list, in
// order. The caller holds one lock around each method, and performs the actions of one call before
// those of the next call.
//
// # Time
//
// A write ends in bounded time, and once the client has reported [Timeout] the region does not
// change any more. This needs no synchronised clocks. The server begins to copy only before Ts,
// which it measures from sending PULL. The client gives up at Ts + G, which it measures from
// receiving PULL: it starts later, and waits longer. The guard G covers the difference between
// the rates of the clocks, and the duration of a copy that began before Ts.
//
// So the caller reads the clock for Receive after the message has come, and for the other methods
// before it performs their actions. For Copy it reads the clock again.
//
// When an operation times out, its data may still arrive. So a sink is fenced first: its contents
// are not opened any more, but its STag stays valid for the time Linger, because a Write to an
// invalid STag would end the connection with all other operations. Then it is revoked, and its
// grant is released. The memory of a sink is not used again before the sink is dead.
//
// # What the caller keeps
//
// Actions identify an operation by its [ID] and by the number of its record, [Action.Record]. A record
// is what the machine knows about an operation that has been started. The caller keeps memory, STags
// and ids of grants by record: the number stays the same, and is not used for another operation
// before [Free].
package op
