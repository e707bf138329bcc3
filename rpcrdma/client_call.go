package rpcrdma

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/closed"
	"github.com/goiwarp/iwarp/rpcrdma/internal/plan"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

// A Request is an RPC call, and the memory for its reply. The memory belongs to the Client until Do returns.
type Request struct {
	// Head is the RPC call, from its XID on; with Data, it ends with the length of that opaque. Its length is a multiple
	// of four. No other call of the Client may have the same XID while this one has no reply.
	Head []byte
	// Data is an opaque argument, without its length, which is the last word of Head, and without its pad. The server
	// reads it from here if the call is too long for one message. Data must be eligible by the binding of the program: in
	// version 3 of NFS, the data of WRITE and the path of SYMLINK are (RFC 8267 section 4).
	Data []byte
	// Tail is what follows Data and its pad. Its length is a multiple of four.
	Tail []byte

	// Result is memory for the eligible opaque of the reply, if there is one: the data of READ, or the path of READLINK.
	// The server writes it there.
	Result []byte
	// MaxReply is how many octets the reply has at most, without what goes to Result. If it is zero, or less than
	// fits into one message, a longer reply fails the call. With a Result, MaxReply should fit into one message: if it does
	// not, Linux's server counts the octets of the Result as well, and ends the connection if the sum exceeds MaxReply.
	MaxReply int
	// Buf is memory for Reply.Message, up to its capacity. If that is too little, memory is allocated.
	Buf []byte
}

// A Reply is the reply to a Request.
type Reply struct {
	// Message is the RPC reply, from its XID on. If Result is not zero, Message contains the length of the opaque that is in
	// Request.Result, but neither the opaque nor its pad.
	Message []byte
	// Result is how many octets the server has written to Request.Result. If it is zero, an opaque of the reply is
	// in Message, as over TCP.
	Result int
}

// Errors of a call that the server has received but could not answer, or whose answer is malformed. Only that call has
// failed.
var (
	// ErrChunk: the server could not use the chunks of the call, or the reply did not fit: see Request.MaxReply. It may
	// have executed the call.
	ErrChunk = errors.New("rpcrdma: the server refuses the chunks of the call, or its reply does not fit")
	// ErrVersion: the server does not know version 1 of the transport.
	ErrVersion = errors.New("rpcrdma: the server does not know version 1 of RPC over RDMA")
	// ErrMalformed: the reply is malformed. The server may have executed the call. RFC 8166 section 4.5 has a requester discard such a
	// message. The Client does, but fails the call instead of waiting on: a server sends no second reply, and its credit would be lost.
	ErrMalformed = errors.New("rpcrdma: malformed reply")
)

// A slotState is what the call of a slot waits for.
type slotState uint8

const (
	calling   slotState = iota // its reply
	abandoned                  // its reply, which will be dropped
	answered                   // Do, to read the reply
)

// An answer is the index of the receive that holds a reply, and the length of the reply.
type answer struct{ receive, len int }

// A slot holds what a call needs until its reply has come and its Send has completed.
type slot struct {
	c       *Client
	index   int
	answers chan answer

	// Of the goroutine in Do:
	buf      []byte // the message
	plan     plan.Request
	hdr      wire.Header         // of the call
	reads    [1]wire.ReadSegment // of hdr
	chunks   [1]wire.Chunk       // likewise
	segments [2]wire.Segment     // of the Write chunk and of the Reply chunk
	reply    wire.Header
	mem      []byte      // of the Reply chunk
	mrs      []*iwarp.MR // that the call names
	wr       [1]iwarp.SendWR
	from     [1]iwarp.SGE

	// Under mu of the Client:
	state slotState
	uses  int // the call and its Send count one each
	xid   uint32
}

// Do sends a call, and waits for its reply. It first waits while as many calls are outstanding as the server has granted. A call that
// was given up is outstanding until its reply has come.
//
// If the error is that of ctx, the server may execute the call all the same. The memory of r is no longer accessed; if the
// server tries to access it, the connection ends. Errors of a connection that has ended match net.ErrClosed.
func (c *Client) Do(ctx context.Context, r *Request) (Reply, error) {
	xid, err := r.check()
	if err != nil {
		return Reply{}, err
	}
	s, err := c.enter(ctx)
	if err != nil {
		return Reply{}, err
	}
	defer c.doing.Done()
	s.xid = xid
	if err = s.prepare(r); err == nil {
		err = c.post(ctx, s)
	}
	if err != nil {
		s.withdraw()
		c.mu.Lock()
		c.over(s)
		c.mu.Unlock()
		return Reply{}, err
	}
	a, err := s.await(ctx)
	if err != nil {
		return Reply{}, err
	}
	reply, err := s.read(r, c.received[a.receive*c.inline:][:a.len])
	c.mu.Lock()
	c.again(a.receive) // before the credit is used again
	c.over(s)
	c.mu.Unlock()
	return reply, err
}

// check refuses a Request that is no RPC call, and returns the XID.
func (r *Request) check() (xid uint32, err error) {
	var h wire.CallHeader
	if err := h.Parse(r.Head); err != nil {
		return 0, err
	}
	total := int64(len(r.Head)) + int64(len(r.Data)) + int64(len(r.Tail))
	switch {
	case len(r.Head)%4 != 0 || len(r.Tail)%4 != 0:
		return 0, fmt.Errorf("rpcrdma: Request.Head has %d octets and Tail %d, which are no multiples of four", len(r.Head), len(r.Tail))
	case len(r.Data) > 0 && uint64(binary.BigEndian.Uint32(r.Head[len(r.Head)-4:])) != uint64(len(r.Data)):
		return 0, fmt.Errorf("rpcrdma: Request.Head does not end with the length of Data, %d", len(r.Data))
	case total > math.MaxInt32 || int64(len(r.Result)) > math.MaxInt32:
		return 0, fmt.Errorf("rpcrdma: a call of %d octets, with %d for its result: more than %d", total, len(r.Result), math.MaxInt32)
	case r.MaxReply < 0 || int64(r.MaxReply) > math.MaxInt32:
		return 0, fmt.Errorf("rpcrdma: Request.MaxReply is %d, which is not between 0 and %d", r.MaxReply, math.MaxInt32)
	}
	return h.XID, nil
}

// prepare makes the message, and registers the memory that it names.
func (s *slot) prepare(r *Request) error {
	shape := plan.Shape{Head: len(r.Head), Data: len(r.Data), Tail: len(r.Tail), Result: len(r.Result), Reply: r.MaxReply}
	s.plan = plan.MakeRequest(shape, s.c.toServer, s.c.toClient)
	s.hdr = wire.Header{XID: s.xid, Version: wire.Version, Credits: uint32(len(s.c.slots)), Proc: wire.Msg}
	if err := s.offer(r); err != nil {
		return err
	}
	var source []byte
	var zeros [3]byte
	pad := zeros[:wire.Padded(len(r.Data))-len(r.Data)]
	switch {
	case s.plan.Whole:
		source, s.reads[0].Position = slices.Concat(r.Head, r.Data, pad, r.Tail), 0
		s.hdr.Proc = wire.NoMsg
	case s.plan.Data:
		source, s.reads[0].Position = r.Data, uint32(len(r.Head))
	}
	if source != nil {
		if err := s.expose(source, stag.RemoteRead, &s.reads[0].Segment); err != nil {
			return err
		}
		s.hdr.Reads = s.reads[:]
	}
	s.buf = s.hdr.Append(s.buf[:0])
	if s.plan.Whole {
		return nil
	}
	s.buf = append(s.buf, r.Head...)
	if !s.plan.Data {
		s.buf = append(append(s.buf, r.Data...), pad...)
	}
	s.buf = append(s.buf, r.Tail...)
	return nil
}

// offer registers memory for the reply, and names it in the header.
func (s *slot) offer(r *Request) error {
	const access = stag.LocalWrite | stag.RemoteWrite
	if s.plan.Result {
		if err := s.expose(r.Result, access, &s.segments[0]); err != nil {
			return err
		}
		s.chunks[0] = s.segments[:1]
		s.hdr.Writes = s.chunks[:]
	}
	if !s.plan.Reply {
		return nil
	}
	s.mem = r.Buf[:min(r.MaxReply, cap(r.Buf))]
	if len(s.mem) < r.MaxReply {
		s.mem = make([]byte, r.MaxReply)
	}
	if err := s.expose(s.mem, access, &s.segments[1]); err != nil {
		return err
	}
	s.hdr.Reply, s.hdr.HasReply = s.segments[1:], true
	return nil
}

// expose registers memory for this call only.
func (s *slot) expose(b []byte, access stag.Access, to *wire.Segment) error {
	mr, err := s.c.pd.RegisterMR(b, access, &iwarp.MROptions{QP: s.c.qp})
	if err != nil {
		return fmt.Errorf("rpcrdma: %w", err)
	}
	s.mrs = append(s.mrs, mr)
	*to = wire.Segment{Handle: uint32(mr.STag()), Length: uint32(len(b))}
	return nil
}

// withdraw ends the server's access to the memory of the call.
func (s *slot) withdraw() {
	for _, mr := range s.mrs {
		_ = mr.Close() // the Client posts nothing that names it, so this does not wait
	}
	clear(s.mrs)
	s.mrs = s.mrs[:0]
}

// await waits for the reply. When it returns, the server can no longer change the memory. If it returns without a reply,
// another call may already use the slot.
func (s *slot) await(ctx context.Context) (answer, error) {
	c := s.c
	select {
	case a := <-s.answers:
		s.withdraw()
		return a, nil
	case <-c.lost:
	case <-ctx.Done():
	}
	s.withdraw()
	c.mu.Lock()
	if s.state == answered {
		c.mu.Unlock()
		return <-s.answers, nil
	}
	s.state, s.mem = abandoned, nil
	c.mu.Unlock()
	if closed.Is(c.lost) {
		return answer{}, c.ended(ctx)
	}
	return answer{}, ctx.Err()
}

// read parses b, a reply.
func (s *slot) read(r *Request, b []byte) (Reply, error) {
	at, err := s.reply.Parse(b)
	switch {
	case s.reply.Proc == wire.Failure: // of any version
		return Reply{}, refusal(b)
	case err != nil:
		return Reply{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	a, err := plan.CheckAnswer(&s.hdr, &s.reply, len(b)-at)
	if err != nil {
		return Reply{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	msg := b[at:]
	if a.Chunk {
		msg = s.mem[:a.Message]
	}
	if err := wire.CheckReply(msg, s.xid); err != nil {
		return Reply{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if !a.Chunk {
		msg = append(r.Buf[:0], msg...)
	}
	return Reply{Message: msg, Result: a.Result}, nil
}

// refusal returns the error that a message of the procedure Failure stands for.
func refusal(b []byte) error {
	f, err := wire.ParseFailure(b)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	case f.Kind == wire.FailureVersion:
		return fmt.Errorf("%w: versions %d to %d", ErrVersion, f.Low, f.High)
	}
	return ErrChunk
}
