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

// ErrNotMapped is matched by the errors of Map if the peer has no room for another entry, and of WriteMapped if the peer has
// mapped nothing at an offset.
var ErrNotMapped = errors.New("rsocket: not mapped")

// Map lets the peer write to mem with WriteMapped or riowrite, at offsets from off on, as librdmacm's riomap does. The
// peer learns of the mapping before it receives anything that is written to the stream later. What the peer writes arrives without
// a message. The program must not look at mem before something in the stream has said that the octets are there, since they may
// change at any time until then. mem belongs to the peer until the Conn has been closed, and has at most 1 GiB: a peer that maps more
// than that at once ends the Conn. See MapBuffer to be called for each write.
func (c *Conn) Map(mem []byte, off uint64) error {
	mr, err := c.mem.pd.RegisterMR(mem, stag.LocalWrite|stag.RemoteWrite, nil)
	return c.mapped(off, mr, err)
}

// MapBuffer is like Map, for a Buffer: a goroutine that receives calls its WriteAt with what the peer writes. WriteAt must not
// wait.
func (c *Conn) MapBuffer(b iwarp.Buffer, off uint64) error {
	mr, err := c.mem.pd.RegisterBuffer(b, stag.LocalWrite|stag.RemoteWrite, nil)
	return c.mapped(off, mr, err)
}

// mapped is the part of Map after the registration, which may have failed. Memory is registered without mu, since the Size of a Buffer
// may wait for a goroutine that is in a method of the Conn.
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

// name names a region to the peer, unless its registration has failed.
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
// is written to the stream later arrives after it. It waits while the write buffer is full. The peer's memory may be filled in any
// order (RFC 5040 section 5.5). A program that watches one octet to learn whether the others have arrived, as riostream does, needs
// a separate WriteMapped for that octet, and a peer that places messages one after the other, as Linux's siw does.
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
