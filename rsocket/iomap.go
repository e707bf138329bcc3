package rsocket

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/blockcopy"
	"github.com/goiwarp/iwarp/rsocket/internal/wire"
	"github.com/goiwarp/iwarp/stag"
)

// ErrNotMapped is matched by the errors of Map if the peer has room for no further entry, and of WriteMapped if the peer has
// mapped nothing at an offset.
var ErrNotMapped = errors.New("rsocket: not mapped")

// Map lets the peer write to mem, as librdmacm's riomap does: its WriteMapped at off and behind it, or its riowrite. The
// peer is told ahead of what is written to the stream later. What it writes comes without a message: the program
// sees it in mem, but must not look there before a message of the stream has told that it is there, since the octets
// change at any time until then. mem is the peer's until the Conn has been closed, and has at most 1 GiB: a peer that maps more
// than that at once ends the Conn. See MapBuffer for memory that is watched.
func (c *Conn) Map(mem []byte, off uint64) error {
	mr, err := c.mem.pd.RegisterMR(mem, stag.LocalWrite|stag.RemoteWrite, nil)
	return c.mapped(off, mr, err)
}

// MapBuffer is Map for a Buffer, whose WriteAt is called for what the peer writes, from a goroutine that receives. It must not
// wait.
func (c *Conn) MapBuffer(b iwarp.Buffer, off uint64) error {
	mr, err := c.mem.pd.RegisterBuffer(b, stag.LocalWrite|stag.RemoteWrite, nil)
	return c.mapped(off, mr, err)
}

// mapped is the rest of Map, behind the registration, which may have failed. That is done without mu, since the Size of a Buffer may
// wait for a goroutine that is in a method of the Conn.
func (c *Conn) mapped(off uint64, mr *iwarp.MR, failed error) error {
	err := c.name(off, mr, failed)
	if err == nil {
		return nil
	}
	if mr != nil {
		_ = mr.Close()
	}
	_ = c.mem.pd.Close() // it fails, unless the connection has ended meanwhile and could not close it
	return c.opError("map", err)
}

// name names a region to the peer, unless there is none because its registration has failed.
func (c *Conn) name(off uint64, mr *iwarp.MR, failed error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := cmp.Or(c.writeError(), failed); err != nil {
		return err
	}
	if mr.Len() > wire.MaxHalf {
		return fmt.Errorf("%d octets, and at most %d are possible", mr.Len(), wire.MaxHalf)
	}
	e := wire.Entry{Offset: off, Slot: wire.Slot{Key: uint32(mr.STag()), Length: uint32(mr.Len())}}
	if err := e.Check(); err != nil {
		return err
	}
	if !c.stream.Map(e) {
		return fmt.Errorf("%w: the peer has no room for a further entry", ErrNotMapped)
	}
	c.mem.mapped = append(c.mem.mapped, mr)
	c.pump()
	c.passOn()
	return nil
}

// WriteMapped writes p to the memory that the peer has mapped at off, as librdmacm's riowrite does, and tells the peer nothing. What
// is written to the stream later arrives behind it. It waits while the write buffer is full. The peer's memory may be filled in any
// order (RFC 5040 section 5.5). A program that looks at one octet to see whether the others have come, as riostream does, needs
// a WriteMapped of its own for that octet, and a peer that places messages one after the other, as Linux's siw does.
func (c *Conn) WriteMapped(p []byte, off uint64) (total int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.wr.enter(c.writeError); err != nil {
		return 0, c.opError("write", err)
	}
	defer c.wr.leave()
	c.look()
	for len(p) > 0 {
		to, at, n, err := c.writableAt(off)
		if err != nil {
			return total, c.opError("write", err)
		}
		n = min(n, len(p), int(to.Length))
		blockcopy.Copy(c.mem.out[at:], p[:n])
		c.post(c.out.add(c, 0, 0, c.stream.WriteMapped(to, n)))
		p, off, total = p[n:], off+uint64(n), total+n
	}
	return total, nil
}

// writableAt waits until there is room for octets that are written at off. mu is held.
func (c *Conn) writableAt(off uint64) (to wire.Slot, at, n int, err error) {
	for {
		if err := c.writeError(); err != nil {
			return to, 0, 0, err
		}
		to, ok := c.stream.Mapped(off)
		if !ok {
			return to, 0, 0, fmt.Errorf("%w: nothing at offset %d", ErrNotMapped, off)
		}
		if at, n := c.stream.RingSpace(); n > 0 {
			return to, at, n, nil
		}
		c.await(&c.wr)
	}
}
