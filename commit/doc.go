// Package commit is RDMA Commit (draft-talpey-rdma-commit-00): the operation that makes
// octets of the peer durable, most often those that RDMA Writes have just put there. The
// peer's application takes no part in it.
//
// # On the wire
//
// Commit is an [rdmap.Extension]: [Request] goes on QN 1 with opcode 1100b, [Response] on
// QN 3 with opcode 1101b. Both share message numbers, order, and the IRD/ORD slots with
// RDMA Reads and atomic operations. A Commit covers everything that was sent ahead of it
// on the stream. When the media fail that is a [Status] and the stream goes on; a request that
// makes no sense, or that the rights do not allow, ends it.
//
// The draft leaves much open. What was decided is in docs/adr; the code points are not
// assigned and a later draft uses them otherwise, so that both ends must agree: by an
// [Offer] in their private data, or by other means.
//
// # Durable backings
//
// Durability is a property of the memory at the peer and is chosen there, with
// registration. A [Flusher] makes octets durable: [OpenFile], [MapFile], [MapPMem] and
// [NewBuffer] make some that are registered as they are. They keep track of what was
// written, and one sync serves all Commits that came before it began, of whichever
// streams.
//
//	file, err := commit.OpenFile("log", &commit.FileOptions{Size: 1 << 20})
//	region, err := pd.RegisterBuffer(file, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: file})
//
// Close the region before its backing. Which of them survives what is in docs/durability.md.
//
// # Errors
//
// A [Status] that is not zero is an [*Error], which matches the variable of its code, such as
// [ErrDataLost]. A Flusher of the program's own returns one to choose the code that the peer
// is told, or an errno, from which the code follows.
//
// # Concurrency and memory
//
// Any number of goroutines may call the methods of a backing. The octets of a backing are its
// own: those of a mapping stay valid until Close, and a file must not be truncated meanwhile.
package commit
