package perf

import (
	"encoding/binary"
	"fmt"
)

// The reqresp baseline fetches blocks over plain TCP, as a good short Go program does: the
// client has a depth of requests outstanding, and the server writes the answers to all
// requests that it has received together. A request is
//
//	offset (8)  zero (4)  length (4)
//
// big endian. The answer is the request and that many octets. Answers are in the order of their
// requests.
type fetchRequest struct {
	offset uint64
	length uint32
}

const (
	// fetchBuffer is the size of the buffer into which either end reads.
	fetchBuffer = 64 << 10
	// maxRequests is how many requests may be outstanding on a connection. They fit into the server's
	// buffer, so that a client that writes them never waits for a server that writes answers.
	maxRequests = fetchBuffer / fetchLen
)

func (q fetchRequest) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, q.offset)
	return binary.BigEndian.AppendUint64(b, uint64(q.length))
}

// get reads a request for a part of size octets.
func (q *fetchRequest) get(b []byte, size int) error {
	q.offset = binary.BigEndian.Uint64(b)
	q.length = binary.BigEndian.Uint32(b[12:])
	if q.offset > uint64(size) || uint64(q.length) > uint64(size)-q.offset {
		return fmt.Errorf("request for %d octets at %d of %d", q.length, q.offset, size)
	}
	return nil
}
