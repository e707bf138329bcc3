package rsocket

import (
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
// change at any time until then. mem is the peer's until the Conn has been closed. See MapBuffer for memory that is watched.
func (c *Conn) Map(mem []byte, off uint64) error {
	return c.mapped(int64(len(mem)), off, func(pd *iwarp.PD) (*iwarp.MR, error) {
		return pd.RegisterMR(mem, stag.LocalWrite|stag.RemoteWrite, nil)
	})
}

// MapBuffer is Map for a Buffer, whose WriteAt is called for what the peer writes, from a goroutine that receives. It must not
// wait.
func (c *Conn) MapBuffer(b iwarp.Buffer, off uint64) error {
	if b == nil {
		return c.opError("map", errors.New("the Buffer is nil"))
	}
	return c.mapped(b.Size(), off, func(pd *iwarp.PD) (*iwarp.MR, error) {
		return pd.RegisterBuffer(b, stag.LocalWrite|stag.RemoteWrite, nil)
	})
}

func (c *Conn) mapped(size int64, off uint64, register func(*iwarp.PD) (*iwarp.MR, error)) error {
	if size < 1 || size > wire.MaxHalf {
		return c.opError("map", fmt.Errorf("%d octets, which are not between 1 and %d", size, wire.MaxHalf))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.writeError(); err != nil {
		return c.opError("map", err)
	}
	mr, err := register(c.mem.pd)
	if err != nil {
		return c.opError("map", err)
	}
	e := wire.Entry{Offset: off, Slot: wire.Slot{Key: uint32(mr.STag()), Length: uint32(size)}}
	if err = e.Check(); err == nil && !c.stream.Map(e) {
		err = fmt.Errorf("%w: the peer has no room for a further entry", ErrNotMapped)
	}
	if err != nil {
		_ = mr.Close()
		return c.opError("map", err)
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
