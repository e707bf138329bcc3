// Package host is a host of NVMe over Fabrics with RDMA, in user space: it connects to a subsystem
// of a target, such as that of the Linux kernel or of package target, and reads and writes the
// blocks of its namespaces. It is built on the verbs of package iwarp.
//
// [Discover] lists the subsystems that a target offers. [Connect] makes a [Controller], with an
// admin queue and some I/O queues, each on a connection of its own. [Controller.Namespaces] returns
// a [Namespace] for each namespace; it is an io.ReaderAt and an io.WriterAt.
//
// # Memory
//
// A command has its data in one of two places. What a Write has, and what fits the capsule of the
// target, is copied behind the command. Everything else stays where it is: for the time of the
// command the buffer of the caller is a region of its own, of exactly its length and with one right
// (read for a Write, write for a Read), which no other connection can use. The target ends that
// with its response, and the host does if the target did not. When a call returns, the network has
// no access to the buffer any more, whatever the call returns.
//
// When the context of a call ends, the call returns at once, and its command goes on at the target:
// it cannot be known whether a Write is carried out. Octets that still arrive for a Read are
// dropped, and what is left of a Write is sent from a copy.
//
// A response that reports success although the target has not written the whole buffer of a Read,
// or not fetched all data of a Write, is an error: [ErrShortData].
//
// # Errors
//
// A response other than success is a [capsule.StatusError]. It is sent again up to Options.Retries
// times, if the target does not forbid that by the bit DNR.
//
// A command without a response within its timeout, a connection that is lost, and anything that
// the target must not send, end all connections of the controller. All commands then fail with the
// same [LostError], or are sent again when the controller is connected again, for which it tries
// until Options.CtrlLoss is over, or the target refuses the host for good, with DNR in the response on
// the admin queue. A Compare is not sent again, since a Write of another host could
// have come between. A Namespace lives through that, if the namespace still has the same
// identifiers; otherwise it fails with [ErrReplaced].
//
// The host trusts no octet of the target. What may be wrong with them ends the connections with an
// error that matches [capsule.ErrMalformed].
//
// An NQN is a name and no proof of anything: only TLS, or an Authenticator (package cm), in
// Options.QPConfig tell that the target is the right one.
//
// # Concurrency
//
// All methods may be called by any goroutine. Reads and Writes of one call larger than the target
// takes at once are cut, and sent one after the other; calls of several goroutines are under way
// together, on all I/O queues. Nothing orders them, as nothing orders the commands of NVMe.
package host
