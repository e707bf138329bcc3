package rdmap

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/transport"
)

// An Extension adds one pair of messages to a stream: a request on QN 1, which takes
// a slot of the requester's ORD and of the responder's IRD as an RDMA Read does, and
// its response on QN 3. Responses of all kinds leave in the order of their requests
// (RFC 7306 section 5.2.2).
type Extension struct {
	Request, Response       Opcode
	MaxRequest, MaxResponse int // octets; a longer message ends the stream

	// Serve is called when a request is delivered, in order, by the receiving
	// goroutine and without any lock. It must not block. It answers with in.Reply or
	// in.Fail, at once or later and from any goroutine. nil: requests of the peer are
	// refused as an unexpected opcode.
	Serve func(in *Inbound)

	// Accept is asked about a response, r.Reply, before r completes; by the receiving
	// goroutine and without any lock. An error ends the stream; it should be a
	// [transport.Fault]. nil: all responses are accepted.
	Accept func(r *Request) error
}

// An Inbound is one request of the peer that awaits its response.
type Inbound struct {
	s     *Stream
	head  ddp.UntaggedHeader // of its last segment
	state inboundState
	ext   *Extension // nil: a Read Request
	read  ReadRequest
	fault *transport.Fault // instead of a response

	request  []byte // the queue's buffer
	n        int    // octets of it that were received
	response []byte
}

type inboundState uint8

const (
	inboundOpen inboundState = iota // with Serve
	inboundAnswered
)
