package plan

import (
	"fmt"

	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

// A Shape holds the lengths of the parts of a client's call, and of the memory for its reply.
type Shape struct {
	Head int // octets before the opaque that may go by a Read chunk
	Data int // of that opaque, without its pad; 0: there is none
	Tail int // behind its pad

	Result int // of the memory for the opaque of the reply that may go by a Write chunk; 0: there is none
	Reply  int // of the reply, without that opaque, at most
}

// len returns the length of the call.
func (s *Shape) len() int { return s.Head + wire.Padded(s.Data) + s.Tail }

// A Request says how a call is sent, and what memory of the client its header names: a segment for each chunk.
type Request struct {
	Whole  bool // the call is a Read chunk at position zero, and nothing of it is inline
	Data   bool // the opaque is a Read chunk at position Head, and the rest is inline, without the pad
	Result bool // there is a Write chunk
	Reply  bool // there is a Reply chunk
}

// MakeRequest makes the plan of a call. A message to the server has at most send octets, a message from it at most receive.
// The opaque of the reply goes by the Write chunk whenever there is memory for it, so that its place does not depend
// on its length. Everything else goes by a chunk only if it does not fit.
func MakeRequest(s Shape, send, receive int) Request {
	q := Request{Result: s.Result > 0}
	answer := wire.MinLen
	if q.Result {
		answer += wire.WriteLen
	}
	q.Reply = answer+s.Reply > receive
	switch header := q.headerLen(); {
	case header+s.len() <= send:
	case header+wire.ReadLen+s.Head+s.Tail <= send:
		q.Data = true
	default:
		q.Whole = true
	}
	return q
}

// headerLen returns the length of the header without a Read chunk.
func (q *Request) headerLen() int {
	n := wire.MinLen
	if q.Result {
		n += wire.WriteLen
	}
	if q.Reply {
		n += wire.ReplyLen
	}
	return n
}

// An Answer says where the parts of a reply are, whose header was read.
type Answer struct {
	Result  int  // octets that were written to the Write chunk
	Chunk   bool // the message is in the Reply chunk, and not inline
	Message int  // its octets there
}

// CheckAnswer checks the header of a reply against that of its call. inline is how many octets follow the header.
func CheckAnswer(call, reply *wire.Header, inline int) (a Answer, err error) {
	if reply.Proc != wire.Msg && reply.Proc != wire.NoMsg {
		return a, fmt.Errorf("%w: procedure %d in a reply", ErrChunk, reply.Proc)
	}
	if len(reply.Reads) > 0 {
		return a, fmt.Errorf("%w: a Read list in a reply", ErrChunk)
	}
	if len(reply.Writes) > 0 { // a server may omit a chunk that it has not used
		if len(reply.Writes) != len(call.Writes) {
			return a, fmt.Errorf("%w: a reply with %d Write chunks to a call with %d", ErrChunk, len(reply.Writes), len(call.Writes))
		}
		for i := range reply.Writes {
			n, err := filled(call.Writes[i], reply.Writes[i], "Write")
			if err != nil {
				return a, err
			}
			a.Result += n
		}
	}
	if reply.HasReply {
		if a.Message, err = filled(call.Reply, reply.Reply, "Reply"); err != nil {
			return a, err
		}
	}
	a.Chunk = reply.Proc == wire.NoMsg
	if a.Chunk != (a.Message > 0) || a.Chunk == (inline > 0) {
		return a, fmt.Errorf("%w: a reply of %d octets inline and %d in the Reply chunk", ErrChunk, inline, a.Message)
	}
	return a, nil
}

// filled returns how many octets the server has written to a chunk of the call, as the reply says. The segments are filled in order.
func filled(call, reply wire.Chunk, kind string) (n int, err error) {
	if len(reply) != len(call) {
		return 0, fmt.Errorf("%w: a %s chunk of %d segments in the reply, and of %d in the call", ErrChunk, kind, len(reply), len(call))
	}
	full := true
	for i, s := range reply {
		c := call[i]
		if s.Handle != c.Handle || s.Offset != c.Offset || s.Length > c.Length || s.Length > 0 && !full {
			return 0, fmt.Errorf("%w: the %s chunk of the reply is not that of the call", ErrChunk, kind)
		}
		full = s.Length == c.Length
		n += int(s.Length)
	}
	return n, nil
}
