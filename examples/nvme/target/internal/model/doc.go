// Package model is what a target of NVMe over Fabrics with RDMA knows, and what it answers. It has subsystems with
// namespaces, hosts that are allowed, controllers, and queues with the commands that are outstanding on them. It has
// no connection, no clock and no medium: time is passed in, and each input returns what is to be done as a list
// of [Action]. What does it is called the engine here: it owns connections, buffers and back ends.
//
// # A command
//
// The engine passes each message of a queue to [Queue.Command]. The commands end, each with at most one DoRespond:
//
//	no data, or an error       Command -> DoRespond
//	data to the host (admin)   Command -> DoFill -> Fill -> DoRespond with data
//	keyed data of the host     Command -> DoFetch -> Begin, RDMA Read, Fetched -> DoRespond or DoExecute
//	back end                   -> DoExecute -> Begin, back end, Finish -> DoRespond, of a Read with data
//	Asynchronous Event Request Command -> nothing -> DoRespond when there is an event
//
// [Queue.Finish] ends a command at each of these points, with a status: when there is no memory for it, for example.
// When the connection has ended for whatever reason, the engine calls [Target.Lost]; commands that have begun
// with a back end still get their Finish, which then answers nothing.
//
// A [Ref] names a command. One that has ended, for example because it was aborted, does nothing any more.
//
// # Concurrency
//
// All methods may be called from any goroutine. One lock protects the target with its subsystems and controllers; each
// queue has another one. Commands of connected I/O queues take the lock of their queue alone, and find
// namespaces in an immutable table; they allocate nothing. The actions of a call are to be done in their order. SQHD
// is counted when a response is made: an engine that wants it to ascend posts responses of a queue in
// that order.
//
// Calls of Command for one queue are made one after another.
//
// # Time
//
// now is the time since a fixed moment, on a clock that does not go back.
//
// The specifications are NVMe over Fabrics 1.1, NVM Express Base 2.0, NVM Command Set 1.0 and RDMA transport 1.0.
package model
