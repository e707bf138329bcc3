// Package program runs random programs of verbs, and compares their outcomes.
//
// A [Program] is data: a few words about its connections, and one line for each operation, such as
//
//	0a write r=1 src=16 dst=40 len=100 fence=read unsignaled
//
// for the initiator (a) of connection 0. [Generate] makes a program from a seed. A [Config] says over which
// network, and with which framing, the program runs. [New] makes the [Plan] of a program: its model, which
// knows what each work request does to which octets. A [Runner] executes the plan with a Config and
// compares. [Shrink] makes a failing program smaller, and [Draw] draws what has happened.
//
// # What a program may rely on
//
// Each end of a connection has its own memory, and regions that it makes accessible to its peer. Nothing
// else uses them, so the work of one end never conflicts with the work of another one. Operations of one end
// that touch the same octets are separated as RFC 5040 section 5.5 requires: if no order is guaranteed, the
// plan sets a fence, or posts an RDMA Read of no octets before the fence. This is necessary because the
// segments of two RDMA Writes may be placed in any order over a lower layer that reorders them.
//
// # What is compared
//
// Until something ends a connection, everything is determined. Whenever the program waits for all work
// (and at its end, if it closes the connection), each signaled work request has completed successfully,
// once, in the order of posting, and no other; each message has completed one receive, in the order of sending,
// with its octets, its Immediate Data, its solicited event and the STag that it has invalidated; each atomic
// operation has returned the value that the model computes; and every octet of every region, and
// of the durable contents after a Commit, is as in the model.
//
// After a fault (an abort, a Terminate, a cut of the connection, a wrong STag, bounds or right, a message without a
// receive or too long for it, a region that is revoked while it is used) the RFCs guarantee less, because the
// network determines how much of the work was done. Then these rules are checked:
//
//   - Each work request that a queue has accepted completes once, in order; an unsignaled one only if it
//     fails. After the first failure all fail, and no more than one of them has another status than flushed.
//   - The received messages are the first of the sent messages, with their octets. Each receive
//     completes once, in order, and all receives after a failure fail. A receive of an SRQ completes only
//     if a message has taken it.
//   - A success means that the effect is in place: the octets of an RDMA Read, the value of an atomic operation, the
//     durable octets of a Commit. It also means that all earlier work of the same end was performed. A message that the
//     peer has received confirms earlier RDMA Writes and messages, but not operations that the peer answers, unless
//     there is a fence between them (RFC 7306 section 7). The success of an RDMA Write or a Send by itself confirms nothing.
//   - A confirmed octet has the value of the model. Any other octet has either that value or one that an
//     unconfirmed work request would have written. No other octet changes.
//   - An access that must be refused never succeeds and never changes an octet, except that the segments of a message
//     that lie within the bounds may be placed.
//   - Each queue pair ends with one event, of a kind that the fault explains.
//
// What is determined is also compared between the configurations, from what was observed rather than from the
// model: see [Outcome].
package program
