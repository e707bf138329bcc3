// Package model decides what a target of NVMe over Fabrics with RDMA knows and answers. It has subsystems with
// namespaces, allowed hosts, controllers, and queues with their outstanding commands. It has no connection, no
// clock and no medium: time is passed in, and each input returns the actions to perform as a list of [Action].
// The code that performs them is called the engine here: it owns connections, buffers and back ends.
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
// [Queue.Finish] can end a command at each of these points, with a status: for example if there is no memory for it.
// When the connection has ended for any reason, the engine calls [Target.Lost]; commands that a back end has begun
// still get their Finish, which then sends no response.
//
// A [Ref] names a command. The Ref of a command that has ended, for example because it was aborted, has no effect.
//
// # Concurrency
//
// All methods may be called from any goroutine. One lock protects the target with its subsystems and controllers; each
// queue has its own lock. Commands of connected I/O queues take only the lock of their queue, and find namespaces in
// an immutable table; they allocate nothing. The engine must perform the actions of a call in order. SQHD is
// counted when a response is made: for SQHD to ascend, the engine must post the responses of a queue in that
// order.
//
// Calls of Command for one queue are made one after another.
//
// # Time
//
// now is the time since a fixed moment, on a monotonic clock.
//
// The specifications are NVMe over Fabrics 1.1, NVM Express Base 2.0, NVM Command Set 1.0 and RDMA transport 1.0.
package model
