// Package rpc exchanges the messages that NVMe over RDMA exchanges for a command, without NVMe: it is the baseline
// of the NVMe packages. Each operation has a request of 64 octets and a response of 16.
//
//	Get        the server writes octets to the client by an RDMA Write, and responds by a Send with Invalidate
//	Put        the server reads octets of the client by an RDMA Read, and responds likewise
//	PutInside  the octets are behind the request, in the same Send, and the response is a Send
//
// For each Get and Put the client enables a region of the octets of that operation only. It sends the region's STag with
// the request, and the response invalidates it: as many STags as NVMe needs. Everything else is done as cheaply as
// the verbs allow. One goroutine at each end polls completions in batches and posts what follows from a batch in one call; the
// octets of the server are sent from, or placed in, its memory without a copy; nothing is locked; and nothing is checked against a
// peer that violates the rules, except the STag that a response has invalidated.
package rpc

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A Kind is what an operation does.
type Kind string

// The kinds of operations.
const (
	Get       Kind = "get"
	Put       Kind = "put"
	PutInside Kind = "putinside"
)

// A Shape holds the parameters that both ends of a connection must know.
type Shape struct {
	Kind   Kind `json:"kind"`
	Size   int  `json:"size"`   // octets of an operation
	Region int  `json:"region"` // octets of the server: each operation accesses Size of them at a multiple of Size
	Depth  int  `json:"depth"`  // outstanding operations
	CRC    bool `json:"crc"`
}

// The lengths of messages.
const (
	requestLen  = 64
	responseLen = 16
)

// A request is a request of the client.
type request struct {
	slot   uint32
	stag   stag.STag
	offset uint64 // of the octets at the server
}

func (q *request) put(b []byte) {
	binary.BigEndian.PutUint32(b, q.slot)
	binary.BigEndian.PutUint32(b[4:], uint32(q.stag))
	binary.BigEndian.PutUint64(b[8:], q.offset)
}

func (q *request) get(b []byte) {
	q.slot = binary.BigEndian.Uint32(b)
	q.stag = stag.STag(binary.BigEndian.Uint32(b[4:]))
	q.offset = binary.BigEndian.Uint64(b[8:])
}

// receiveLen returns the length of a receive of the server.
func (s *Shape) receiveLen() int {
	if s.Kind == PutInside {
		return requestLen + s.Size
	}
	return requestLen
}

// places returns the number of places at which operations work.
func (s *Shape) places() int { return max(s.Region/s.Size, 1) }

func (s *Shape) mpa() iwarp.MPAOptions { return iwarp.MPAOptions{NoCRC: !s.CRC, ClientServer: true} }

// batch is how many completions are polled at a time.
const batch = 64
