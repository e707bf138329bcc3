package rpcrdma

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/closed"
)

// Records returns the connection as a stream with record marks (RFC 5531 section 11): Read returns calls, each as
// one fragment, and Write takes replies, whose XIDs say which call they answer. The stream takes the calls of
// the connection: do not use ReadCall as well. A reply must not begin before its call was read. Instead of a reply that does
// not fit the call, the client gets an error of the transport; Write does not fail.
//
// Read returns io.EOF after a graceful end, and when all calls are answered after Shutdown.
func (c *Conn) Records() net.Conn { return &records{c: c} }

type records struct {
	c        *Conn
	in       reading
	out      writing
	readEnd  deadline
	writeEnd deadline
	closed   atomic.Bool
}

// reading is the side of the calls.
type reading struct {
	mu   sync.Mutex
	call *Call
	mark [markLen]byte
	at   int // of the mark and the message
}

const (
	markLen  = 4
	lastMark = 1 << 31
)

// Read returns octets of one call.
func (r *records) Read(p []byte) (int, error) {
	in := &r.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := r.readEnd.err(); err != nil || len(p) == 0 {
		return 0, err
	}
	if in.call == nil {
		if err := r.nextCall(); err != nil {
			return 0, r.why(err)
		}
	}
	if closed.Is(r.c.lost) {
		r.drop()
		return 0, r.why(r.c.end(r.readEnd.wait()))
	}
	msg := in.call.msg
	n := 0
	if in.at < markLen {
		n = copy(p, in.mark[in.at:])
	}
	if at := in.at + n - markLen; at >= 0 {
		n += copy(p[n:], msg[at:])
	}
	if in.at += n; in.at == markLen+len(msg) {
		r.c.lend(in.call)
		in.call = nil
	}
	return n, nil
}

// why returns the error of Read: io.EOF means that the client has closed the connection, so it is replaced if this side has.
func (r *records) why(err error) error {
	switch {
	case errors.Is(err, errCanceled):
		return os.ErrDeadlineExceeded
	case errors.Is(err, io.EOF) && r.closed.Load():
		return errClosed
	}
	return err
}

// nextCall waits for a call.
func (r *records) nextCall() error {
	k, err := r.c.next(r.readEnd.wait())
	if err != nil {
		return err
	}
	r.in.call, r.in.at = k, 0
	binary.BigEndian.PutUint32(r.in.mark[:], lastMark|uint32(len(k.msg)))
	return nil
}

// drop drops the call that is being read.
func (r *records) drop() {
	if k := r.in.call; k != nil {
		r.in.call = nil
		r.c.giveUp(k)
	}
}

// lend hands over a call whose message was copied.
func (c *Conn) lend(k *Call) {
	c.mu.Lock()
	c.forget(k)
	k.state = handed
	c.unlock()
}

// claimXID begins an answer to the call with an XID, which was handed over.
func (c *Conn) claimXID(xid uint32) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.calls {
		if k := &c.calls[i]; k.state == handed && k.rpc.XID == xid {
			k.state = answering
			return k
		}
	}
	return nil
}

func xidOf(msg []byte) (uint32, bool) {
	if len(msg) < 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(msg), true
}

// Close ends the connection. Replies that were written are sent. See Conn.Close.
func (r *records) Close() error {
	r.closed.Store(true)
	err := r.c.Close()
	r.in.mu.Lock()
	r.drop()
	r.in.mu.Unlock()
	r.out.mu.Lock()
	r.out.reset(r.c)
	r.out.mu.Unlock()
	r.c.dropHanded()
	return err
}

// dropHanded drops the calls that were handed over: they will not be answered.
func (c *Conn) dropHanded() {
	for i := range c.calls {
		k := &c.calls[i]
		if c.claim(k) == nil {
			c.giveUp(k)
		}
	}
}

func (r *records) LocalAddr() net.Addr  { return r.c.local }
func (r *records) RemoteAddr() net.Addr { return r.c.remote }

func (r *records) SetDeadline(t time.Time) error {
	r.readEnd.set(t)
	r.writeEnd.set(t)
	return nil
}

func (r *records) SetReadDeadline(t time.Time) error {
	r.readEnd.set(t)
	return nil
}

func (r *records) SetWriteDeadline(t time.Time) error {
	r.writeEnd.set(t)
	return nil
}
