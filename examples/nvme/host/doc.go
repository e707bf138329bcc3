// Package host is a host of NVMe over Fabrics with RDMA, in user space: it connects to a subsystem
// of a target, such as that of the Linux kernel or of package target, and reads and writes the
// blocks of its namespaces. It is built on the verbs of package iwarp.
//
// [Discover] lists the subsystems that a target offers. [Connect] makes a [Controller], with an
// admin queue and some I/O queues, each on its own connection. [Controller.Namespaces] returns a
// [Namespace] for each namespace; it is an io.ReaderAt and an io.WriterAt.
//
// # Memory
//
// A command has its data in one of two places. The data of a Write that fit into the target's capsules
// are copied behind the command. All other data stay where they are: for the duration of the
// command the caller's buffer is a region of exactly its length, with one access right (read for a
// Write, write for a Read), which no other connection can use. The target invalidates the region
// with its response, and the host does so if the target did not. When a call returns, with or without
// an error, the network no longer has access to the buffer.
//
// When the context of a call ends, the call returns at once, and its command continues at the target:
// it is unknown whether a Write is executed. Octets that still arrive for a Read are dropped, and the
// rest of a Write is sent from a copy.
//
// A response that reports success although the target has not written the whole buffer of a Read,
// or not fetched all data of a Write, is an error: [ErrShortData].
//
// # Errors
//
// A response other than success is a [capsule.StatusError]. The command is sent again up to
// Options.Retries times, unless the target forbids that with the bit DNR.
//
// If a command has no response within its timeout, a connection is lost, or the target sends something
// that it must not send, all connections of the controller end. All commands then fail with the
// same [LostError], or are sent again once the controller is connected again. It tries to connect
// until Options.CtrlLoss is over, or the target refuses the host permanently, with DNR in the
// response on the admin queue. A Compare is not sent again, since another host may have written
// meanwhile. A Namespace stays usable after that if the namespace still has the same identifiers;
// otherwise it fails with [ErrReplaced].
//
// The host trusts no octet of the target. Invalid octets end the connections with an error that
// matches [capsule.ErrMalformed].
//
// An NQN is only a name and proves nothing: only TLS or an Authenticator (package cm) in
// Options.QPConfig ensures that the target is the right one.
//
// # Concurrency
//
// All methods may be called by any goroutine. A Read or Write that is larger than the target takes at
// once is split, and the parts are sent one after the other. Calls of several goroutines run
// concurrently, on all I/O queues. Nothing orders them, as nothing orders NVMe commands.
package host
