package rsocket

import (
	"errors"
	"io"
	"net"
	"os"

	"github.com/goiwarp/iwarp/internal/blockcopy"
)

// Write copies p into the write buffer, waiting for room in it. The octets that it has taken are sent
// even if it then fails.
func (c *Conn) Write(p []byte) (total int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.wr.enter(c.writeError); err != nil {
		return 0, c.opError("write", err)
	}
	defer c.wr.leave()
	if len(p) == 0 {
		return 0, c.opError("write", c.writeError())
	}
	if len(p) > copyLocked {
		c.look() // completed messages free room
	}
	for {
		off, n, err := c.writable()
		if err != nil {
			return total, c.opError("write", err)
		}
		n = min(n, moveAtOnce, len(p))
		if n <= copyLocked {
			copy(c.mem.out[off:], p[:n])
		} else {
			c.mu.Unlock()
			blockcopy.Copy(c.mem.out[off:], p[:n])
			c.mu.Lock()
		}
		if err := c.queue(n); err != nil {
			return total, c.opError("write", err)
		}
		total += n
		if p = p[n:]; len(p) == 0 {
			return total, nil
		}
	}
}

// ReadFrom sends everything that it reads from r, which reads directly into the write buffer. Other writers wait
// until it is done, or until their deadline.
func (c *Conn) ReadFrom(r io.Reader) (total int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.wr.enter(c.writeError); err != nil {
		return 0, c.opError("write", err)
	}
	defer c.wr.leave()
	for {
		c.look()
		off, n, err := c.writable()
		if err != nil {
			return total, c.opError("write", err)
		}
		room := min(n, moveAtOnce)
		n, err = c.outside(r.Read, c.mem.out[off:off+room])
		if n < 0 || n > room {
			return total, errReadCount
		}
		if err := c.queue(n); err != nil {
			return total, c.opError("write", err)
		}
		total += int64(n)
		if err == io.EOF { //nolint:errorlint // an error that wraps it means that octets are missing
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// CloseWrite tells the peer, behind what was written, that nothing more will come. It does not wait. Read
// works until the peer has ended its stream, too.
func (c *Conn) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.opError("close", net.ErrClosed)
	}
	c.stream.Shutdown()
	c.pump()
	c.rouse(&c.wr)
	c.passOn()
	return nil
}

// writable waits until there is room for octets. mu is held.
func (c *Conn) writable() (off, n int, err error) {
	for {
		if err := c.writeError(); err != nil {
			return 0, 0, err
		}
		if off, n := c.stream.Room(); n > 0 {
			return off, n, nil
		}
		c.await(&c.wr)
	}
}

// writeError returns the reason why nothing can be written, or nil. mu is held.
func (c *Conn) writeError() error {
	switch {
	case c.closed:
		return net.ErrClosed
	case c.wr.expired:
		return os.ErrDeadlineExceeded
	case c.state != running && c.cause != nil:
		return c.cause
	case c.state != running || c.stream.Reset():
		return errReset
	case !c.stream.Writable():
		return errNoWriting
	}
	return nil
}

// queue queues n octets to be sent, unless nothing can be sent any more. mu is held.
func (c *Conn) queue(n int) error {
	if err := c.writeError(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	c.stream.Queue(n)
	c.pump()
	return nil
}
