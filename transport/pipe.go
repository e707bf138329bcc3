package transport

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// PipeOptions describe an in-memory connection. They apply to both directions.
type PipeOptions struct {
	// Latency is the time from the Write of an octet, or from the end of the stream, until
	// the peer can read it. A reset arrives at once.
	Latency time.Duration
	// Limit bounds the octets of one direction that are written and not yet read. A
	// Write that exceeds it waits. Zero means 64 KiB.
	Limit int
}

const defaultPipeLimit = 64 << 10

// Pipe returns the two ends of an in-memory byte stream that behaves like a TCP
// connection: writes are buffered up to the limit, and deadlines work. Both ends have
// CloseWrite() error, which ends one direction, and Abort() error, which resets the
// connection: calls of the peer fail with ECONNRESET. As with TCP, an end that is
// aborted, or closed with unread data, destroys the data that the peer has not read yet.
//
// A pipe consists of a mutex, a condition variable and timers, so that it can be used
// within a testing/synctest bubble. It has no goroutine.
func Pipe(o PipeOptions) (a, b net.Conn) {
	return newPipe(o, "pipe", "pipe")
}

func newPipe(o PipeOptions, an, bn pipeAddr) (a, b *pipeConn) {
	if o.Limit <= 0 {
		o.Limit = defaultPipeLimit
	}
	p := &pipe{latency: o.Latency, limit: o.Limit}
	p.changed.L = &p.mu
	a = &pipeConn{pipe: p, local: an, remote: bn}
	b = &pipeConn{pipe: p, local: bn, remote: an}
	a.peer, b.peer = b, a
	return a, b
}

// pipe is the state that the two ends share.
type pipe struct {
	latency time.Duration
	limit   int

	mu      sync.Mutex
	changed sync.Cond // signaled after each change that a call may wait for
	reset   bool      // an end was aborted
}

type pipeConn struct {
	pipe          *pipe
	peer          *pipeConn
	local, remote pipeAddr

	// Guarded by pipe.mu:
	in     flow // the octets sent to this end and not read yet
	rd, wd deadline
	closed bool
}

// Read returns io.EOF after the peer's CloseWrite or Close.
func (c *pipeConn) Read(b []byte) (int, error) {
	p := c.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, c.opError("read", net.ErrClosed)
		case c.rd.expired:
			return 0, c.opError("read", os.ErrDeadlineExceeded)
		case p.reset:
			return 0, c.opError("read", os.NewSyscallError("read", syscall.ECONNRESET))
		case len(b) == 0:
			return 0, nil
		}
		n, wait := c.in.read(b)
		if n > 0 {
			p.changed.Broadcast()
			return n, nil
		}
		if wait == 0 {
			return 0, io.EOF
		}
		c.in.wakeAfter(wait, p)
		p.changed.Wait()
	}
}

func (c *pipeConn) Write(b []byte) (int, error) {
	p := c.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	total := 0
	for {
		switch {
		case c.closed:
			return total, c.opError("write", net.ErrClosed)
		case c.wd.expired:
			return total, c.opError("write", os.ErrDeadlineExceeded)
		case p.reset || c.peer.closed:
			return total, c.opError("write", os.NewSyscallError("write", syscall.ECONNRESET))
		case c.peer.in.ended:
			return total, c.opError("write", os.NewSyscallError("write", syscall.EPIPE))
		}
		n := c.peer.in.write(b[total:], p.limit, p.latency)
		if n > 0 {
			p.changed.Broadcast()
		}
		if total += n; total == len(b) {
			return total, nil
		}
		p.changed.Wait()
	}
}

// CloseWrite ends the direction towards the peer.
func (c *pipeConn) CloseWrite() error {
	p := c.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.closed {
		return c.opError("close", net.ErrClosed)
	}
	c.peer.in.end(p.latency)
	p.changed.Broadcast()
	return nil
}

func (c *pipeConn) Close() error { return c.shut(false) }

// Abort closes this end and resets the connection.
func (c *pipeConn) Abort() error { return c.shut(true) }

func (c *pipeConn) shut(reset bool) error {
	p := c.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.closed {
		return c.opError("close", net.ErrClosed)
	}
	c.closed = true
	c.rd.stop()
	c.wd.stop()
	if reset || c.in.n > 0 {
		p.reset = true
		c.peer.in.drop()
	}
	c.in.drop()
	c.peer.in.end(p.latency)
	p.changed.Broadcast()
	return nil
}

func (c *pipeConn) LocalAddr() net.Addr  { return c.local }
func (c *pipeConn) RemoteAddr() net.Addr { return c.remote }

func (c *pipeConn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: pipeNetwork, Source: c.local, Addr: c.remote, Err: err}
}
