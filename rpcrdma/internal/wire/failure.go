package wire

// Kinds of failure (RFC 8166 section 4.5).
const (
	failureVersion = 1
	failureChunk   = 2
)

// FailureLen is the length of the longest failure.
const FailureLen = fixedLen + 3*4

// AppendVersionFailure appends the answer to a header of another version: the version of that header, and the
// range of the versions that this side knows.
func AppendVersionFailure(b []byte, xid, version, credits uint32) []byte {
	return appendWords(b, xid, version, credits, uint32(Failure), failureVersion, Version, Version)
}

// AppendChunkFailure appends the answer to a call whose chunks are malformed, or which leaves no room for its reply.
func AppendChunkFailure(b []byte, xid, credits uint32) []byte {
	return appendWords(b, xid, Version, credits, uint32(Failure), failureChunk)
}
