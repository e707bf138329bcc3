// Package rdma9p serves 9P over RDMA to Linux: mount -t 9p -o trans=rdma. It is an adapter between QPs of package iwarp and a
// 9P server that works on a stream of octets, such as that of github.com/hugelgupf/p9. [Serve] takes the connections of a
// listener and gives each to a [Handler].
//
// # The protocol
//
// It is what Linux's client does; there is no standard. A connection is a QP. A message of 9P, from its size field to its last
// octet, is one Send; there are no RDMA Reads and Writes, no private data and no credits. The client sends requests, and
// the server one answer for each, in any order, matched by the tag. A second answer to a request, or one that no request
// has asked for, would find no receive at the client and end the connection; the adapter does not send it.
//
// # What the adapter does
//
// It lowers msize, the size of the largest message, in the Tversion that it hands on, because a handler does not know the
// receives: they have msize octets and are posted before the Rversion. Every answer is shorter than msize, because
// Linux takes one of msize octets for an error. It lowers the count of a Tread or Treaddir that asks for more, and replaces a
// longer answer by an Rlerror.
//
// It answers Tflush itself: behind the answer to the request that is to be flushed, because its tag may be used again when the
// client has the Rflush. The request is not cancelled.
//
// It answers a request that has the tag of another one, or comes before Tversion, with an Rlerror; and a Tversion of a version other
// than 9P2000.L with an Rversion that says unknown. A Tversion waits until all other requests are answered.
//
// The handler holds an extended attribute from Txattrcreate until the Tclunk of its fid, so it gets none of more than 64 KiB (E2BIG), and
// those of a connection have 1 MiB together (ENOSPC).
//
// A connection ends at once if a message does not have the length that its size field says, if the handler cannot parse it,
// if the client has too many fids in use, or if no Tversion has come after a while. Linux does not connect again, so nothing else
// ends a connection.
//
// # Flow control
//
// Of each connection the handler has Config.Depth requests at most, and as many may be in the receives. A client that sends more (mount
// option rq) waits, at most for QPConfig.RNRWait. A client that does not take its answers is not read from any more, when the buffers for
// answers are in use.
//
// # Limits
//
// Linux's client works in the initial network namespace, with IPv4 addresses. The versions 9P2000 and 9P2000.u are not
// supported. What the server shows is the business of the handler: package dirfs, for one, does not follow symbolic links out of its
// directory, and does everything as the user of the server's process.
package rdma9p
