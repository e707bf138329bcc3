// Package rdma9p serves 9P over RDMA to Linux: mount -t 9p -o trans=rdma. It is an adapter between QPs of package iwarp and a
// 9P server that works on a stream of octets, such as that of github.com/hugelgupf/p9. [Serve] accepts the connections of a
// listener and passes each to a [Handler].
//
// # The protocol
//
// There is no standard; the protocol is what Linux's client does. A connection is a QP. A 9P message, from its size field to its
// last octet, is one Send; there are no RDMA Reads and Writes, no private data and no credits. The client sends requests, and
// the server sends one answer for each, in any order, matched by the tag. A second answer to a request, or an answer without
// a request, would find no receive at the client and end the connection; the adapter does not send it.
//
// # What the adapter does
//
// The adapter lowers msize, the size of the largest message, in the Tversion that it passes on, because a handler does not know
// the receives: they have msize octets and are posted before the Rversion. Every answer is shorter than msize, because
// Linux takes an answer of msize octets for an error. The adapter lowers the count of a Tread or Treaddir that requests more,
// and replaces a longer answer by an Rlerror.
//
// It answers Tflush itself, after the answer to the request that is to be flushed, because the tag of that request may be reused
// once the client has the Rflush. The request is not cancelled.
//
// It answers a request that has the tag of another one, or comes before Tversion, with an Rlerror, and a Tversion of a version other
// than 9P2000.L with an Rversion that says unknown. A Tversion waits until all other requests are answered.
//
// The handler holds an extended attribute from Txattrcreate until the Tclunk of its fid. So the adapter refuses an attribute of more
// than 64 KiB (E2BIG), and attributes of a connection with more than 1 MiB together (ENOSPC).
//
// A connection ends at once if the length of a message differs from its size field, if the handler cannot parse a message,
// if the client has too many fids in use, or if no Tversion arrives within a time limit. Linux does not connect again, so nothing
// else ends a connection.
//
// # Flow control
//
// The handler has at most Config.Depth requests of each connection, and as many more may be in the receives. A client that sends more
// (mount option rq) waits, at most for QPConfig.RNRWait. If a client does not receive its answers, and all answer buffers are in use, the
// adapter stops reading its requests.
//
// # Limits
//
// Linux's client works in the initial network namespace, with IPv4 addresses. The versions 9P2000 and 9P2000.u are not
// supported. The handler decides what the server shows: package dirfs, for example, does not follow symbolic links out of its
// directory, and does everything as the user of the server's process.
package rdma9p
