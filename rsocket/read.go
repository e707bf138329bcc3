package rsocket

import (
	"io"
	"net"
	"os"
	"time"

	"github.com/goiwarp/iwarp/internal/blockcopy"
)

// moveAtOnce is how many octets are moved between two checks of the state of the connection.
const moveAtOnce = 64 << 10

// copyLocked is how many octets are copied at most with the mutex held.
const copyLocked = 4 << 10

// Read reads what has arrived, and waits until there is something. It returns io.EOF when the peer has ended
// its stream, and io.ErrUnexpectedEOF when the connection has ended before the stream did.
func (c *Conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.rd.enter(c.readError); err != nil {
		return 0, c.opError("read", err)
	}
	defer c.rd.leave()
	if len(p) == 0 {
		return 0, c.opError("read", c.readError())
	}
	from, err := c.readable()
	if err != nil {
		return 0, c.opError("read", err)
	}
	n := len(from)
	if n = min(n, len(p)); n <= copyLocked {
		copy(p, from)
	} else {
		c.mu.Unlock()
		blockcopy.Copy(p, from[:n])
		c.mu.Lock()
	}
	c.consume(n)
	return n, nil
}

// WriteTo writes everything that arrives to w, directly from the memory to which the peer has written it, until
// the peer has ended its stream.
func (c *Conn) WriteTo(w io.Writer) (total int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.rd.enter(c.readError); err != nil {
		return 0, c.opError("read", err)
	}
	defer c.rd.leave()
	for {
		from, err := c.readable()
		if err == io.EOF { //nolint:errorlint // readable does not wrap it
			return total, nil
		}
		if err != nil {
			return total, c.opError("read", err)
		}
		from = from[:min(len(from), moveAtOnce)]
		n, err := c.outside(w.Write, from)
		switch {
		case n < 0 || n > len(from):
			n, err = 0, errWriteCount
		case err == nil && n < len(from):
			err = io.ErrShortWrite
		}
		c.consume(n)
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
}

// outside calls f, a function of the program, without mu, and locks mu again afterwards, even if f panics. f may run for any
// time, or wait for the other side of the stream: another goroutine takes completions meanwhile.
func (c *Conn) outside(f func([]byte) (int, error), p []byte) (int, error) {
	c.passOn()
	c.mu.Unlock()
	defer c.mu.Lock()
	return f(p)
}

// readable waits until there are octets to read. mu is held.
func (c *Conn) readable() ([]byte, error) {
	for drained := false; ; {
		if err := c.readError(); err != nil {
			return nil, err
		}
		if half, off, n := c.stream.Readable(); n > 0 {
			if drained {
				c.stream.Came(c.clock())
			}
			return c.mem.octets(half)[off:][:n], nil
		}
		if err := c.inputEnd(); err != nil {
			return nil, err
		}
		drained = c.stream.Drained()
		c.await(&c.rd)
	}
}

// readError returns the reason why nothing is read, whatever has arrived, or nil. mu is held.
func (c *Conn) readError() error {
	switch {
	case c.closed:
		return net.ErrClosed
	case c.rd.expired:
		return os.ErrDeadlineExceeded
	}
	return nil
}

// inputEnd returns the reason why nothing more arrives, or nil. mu is held.
func (c *Conn) inputEnd() error {
	switch {
	case c.stream.Complete():
		return io.EOF
	case c.state != ended:
		return nil
	case c.cause != nil:
		return c.cause
	case c.lenient:
		return io.EOF
	}
	return io.ErrUnexpectedEOF
}

// clock returns the time since the connection was made.
func (c *Conn) clock() time.Duration { return time.Since(c.born) }

// consume records that n octets were read. mu is held.
func (c *Conn) consume(n int) {
	c.stream.Consume(n)
	// The memory of a connection that has ended is being released.
	if half, small := c.stream.Free(c.clock()); small && c.state != ended {
		if at, ok := c.mem.grow(half); ok {
			c.stream.Larger(at)
		}
	}
	told := c.stream.Told()
	c.pump()
	if c.stream.Told() != told {
		// If the peer's program ends while its socket holds this message unread, that socket resets the connection and loses what
		// it has not sent yet. Receiving while our program works lets the peer send sooner.
		c.takeBeside()
	}
}
