// Package commit implements RDMA Commit (draft-talpey-rdma-commit-00), the operation that makes
// octets in the peer's memory durable, most often those that RDMA Writes have just put there.
// The peer's application takes no part in it.
//
// A program requests a Commit with iwarp.QP.Commit; both sides need iwarp.QPConfig.Commit.
// The side that owns the memory uses a durable backing of this package, as shown below.
//
// # On the wire
//
// Commit is an [rdmap.Extension]: [Request] goes on QN 1 with opcode 1100b, [Response] on
// QN 3 with opcode 1101b. Both share message numbers, order, and the IRD/ORD slots with
// RDMA Reads and atomic operations. A Commit covers everything that was sent ahead of it
// on the stream. A failure of the media is reported by a [Status], and the stream goes on. A
// request that is malformed, or that the rights do not allow, ends the stream.
//
// The draft leaves much open; docs/adr/0011 records the decisions. The code points are not
// assigned, and a later draft uses them for something else, so both ends must agree on
// their meaning: by an [Offer] in their private data (iwarp.CommitOptions.Negotiate), or by
// other means.
//
// # Durable backings
//
// Durability is a property of the memory at the peer, and is chosen there when it is
// registered. A [Flusher] makes octets durable. [OpenFile], [MapFile], [MapPMem] and
// [NewBuffer] return backings: objects that are a Buffer, or memory, and its Flusher. A backing
// records what was written, and one sync serves all Commits that came before it began, of any
// stream.
//
//	file, err := commit.OpenFile("log", &commit.FileOptions{Size: 1 << 20})
//	region, err := pd.RegisterBuffer(file, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: file})
//
// Close the region before its backing. docs/durability.md says what each backing survives.
//
// # Errors
//
// A [Status] other than zero is an [*Error], which matches the variable of its code, such as
// [ErrDataLost]; [FollowOnFailed], [Unspecified] and [Vendor] have none. The program's own Flusher
// returns an *Error to choose the code that the peer receives, or an errno, which implies a code.
//
// # Concurrency and memory
//
// Any number of goroutines may call the methods of a backing. The octets of a backing belong to
// it: those of a mapping stay valid until Close, and a file must not be truncated meanwhile.
package commit
