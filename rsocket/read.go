package rsocket

import (
	"io"
	"net"
	"os"
)

// moveAtOnce is how many octets are moved between two looks at the state of the connection.
const moveAtOnce = 64 << 10

// copyLocked is how many octets are copied without giving the mutex back.
const copyLocked = 4 << 10

// Read reads what has come, and waits until there is something. It returns io.EOF when the peer has ended
// its stream, and io.ErrUnexpectedEOF when the connection has ended without that.
func (c *Conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rd.enter()
	defer c.rd.leave()
	if len(p) == 0 {
		return 0, c.opError("read", c.readError())
	}
	off, n, err := c.readable()
	if err != nil {
		return 0, c.opError("read", err)
	}
	n = min(n, len(p))
	if n <= copyLocked {
		copy(p, c.mem.in[off:off+n])
	} else {
		c.mu.Unlock()
		copy(p, c.mem.in[off:off+n])
		c.mu.Lock()
	}
	c.consume(n)
	return n, nil
}

// WriteTo writes all that comes to w, out of the memory that the peer has written it to, until the peer
// has ended its stream.
func (c *Conn) WriteTo(w io.Writer) (total int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rd.enter()
	defer c.rd.leave()
	for {
		off, n, err := c.readable()
		if err == io.EOF { //nolint:errorlint // readable does not wrap it
			return total, nil
		}
		if err != nil {
			return total, c.opError("read", err)
		}
		n = min(n, moveAtOnce)
		c.mu.Unlock()
		n, err = w.Write(c.mem.in[off : off+n])
		c.mu.Lock()
		c.consume(n)
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
}

// readable waits until there are octets to read. mu is held.
func (c *Conn) readable() (off, n int, err error) {
	for {
		if err := c.readError(); err != nil {
			return 0, 0, err
		}
		if off, n := c.stream.Readable(); n > 0 {
			return off, n, nil
		}
		if err := c.inputEnd(); err != nil {
			return 0, 0, err
		}
		c.rd.cond.Wait()
	}
}

// readError is why nothing is read, whatever has come. mu is held.
func (c *Conn) readError() error {
	switch {
	case c.closed:
		return net.ErrClosed
	case c.rd.expired:
		return os.ErrDeadlineExceeded
	}
	return nil
}

// inputEnd is why nothing more comes, or nil. mu is held.
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

// consume says that n octets were read. mu is held.
func (c *Conn) consume(n int) {
	c.stream.Consume(n)
	c.pump()
}
