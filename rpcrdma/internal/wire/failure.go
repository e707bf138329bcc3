package wire

import "fmt"

// Kinds of failure (RFC 8166 section 4.5).
const (
	failureVersion = 1
	failureChunk   = 2
)

// FailureLen is the length of the longest failure.
const FailureLen = fixedLen + 3*4

// AppendVersionFailure appends the answer to a header of another version: that version, and the
// range of the versions that this side knows.
func AppendVersionFailure(b []byte, xid, version, credits uint32) []byte {
	return appendWords(b, xid, version, credits, uint32(Failure), failureVersion, Version, Version)
}

// AppendChunkFailure appends the answer to a call whose chunks are malformed, or leave no room for the reply.
func AppendChunkFailure(b []byte, xid, credits uint32) []byte {
	return appendWords(b, xid, Version, credits, uint32(Failure), failureChunk)
}

// A FailureKind says what the server objects to.
type FailureKind uint32

// The kinds.
const (
	FailureVersion FailureKind = failureVersion // it knows only versions of the header from Low to High
	FailureChunk   FailureKind = failureChunk   // the chunks are malformed, or the reply does not fit
)

// A Refusal is the contents of a message of the procedure Failure.
type Refusal struct {
	Kind      FailureKind
	Low, High uint32 // versions, of FailureVersion
}

// ParseFailure reads what follows the fixed part of a header, which Parse has read.
func ParseFailure(b []byte) (Refusal, error) {
	r := reader{b: b, at: fixedLen}
	f := Refusal{Kind: FailureKind(r.word())}
	switch f.Kind {
	case FailureVersion:
		f.Low, f.High = r.word(), r.word()
	case FailureChunk:
	default:
		if r.err == nil {
			r.err = fmt.Errorf("%w: failure of kind %d", ErrMalformed, f.Kind)
		}
	}
	return f, r.err
}
