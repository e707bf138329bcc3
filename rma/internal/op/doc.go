// Package op is the state machines of one-sided operations on one connection. A [Client] is the
// side that issues operations, a [Server] the side that owns the regions. Both may be on the same
// connection; [Message.Role] tells which one a message is for.
//
// Nothing here does anything: there is no goroutine, lock, clock, key or work request. Each
// method takes the time and one event, and appends what its caller does next to a list of
// [Action]s, in order. The caller holds one lock around each method, and performs the actions of
// one call before those of the next one.
//
// # Time
//
// A write ends in bounded time, and once the client has reported [Timeout] the region does not
// change any more. There are no synchronised clocks for that. The server copies only until Ts,
// which it measures from when it sends PULL. The client gives up at Ts + G, which it measures from
// when it receives PULL: it starts later, and waits longer. The guard G covers how much the rates
// of the clocks differ, and how long a copy takes that began before Ts.
//
// So the caller reads the clock for Receive after the message has come, and for the other methods
// before it performs their actions. For Copy it reads the clock again.
//
// What was sent when an operation timed out may still come. So a sink is fenced first: nothing
// from it is opened any more, but its STag stays valid for the time Linger, since a Write to an
// STag that is not valid would end the connection with all other operations. Then it is revoked.
// The memory of a sink, and its grant, are not used again before the sink is dead.
//
// # What the caller keeps
//
// Actions name an operation by its [ID] and by the number of its record, [Action.Record]. A record is
// what the machine knows of an operation that has been started. The caller has memory, STags and
// ids of grants by record: the number stays the same, and is not used for another operation before
// [Free].
package op
