package mpa

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/transport"
)

// Append implements [transport.LLP]: it adds one segment to the batch, as an FPDU. The batch
// is full at a little more than 1 MiB, or half of that with CRCs, or about 1000 pieces, and
// earlier if a TCP segment would begin within the PAD and CRC of the FPDU.
// Payload of less than 256 octets is copied even without stage.
//
// A segment that no FPDU can carry, because it is empty or longer than
// MaxMULPDU, ends the sending half, which Flush reports.
func (c *Conn) Append(head []byte, payload [][]byte, stage bool) bool {
	if c.appendSmall(head, payload) {
		return true
	}
	n := len(head)
	for _, p := range payload {
		n += len(p)
	}
	if !legal(n) && c.sendErr == nil {
		c.failSend(fmt.Errorf("mpa: a ULPDU of %d octets, want 1 to %d", n, MaxMULPDU))
	}
	if c.sendErr != nil {
		return true // Flush reports it
	}
	if c.out == nil {
		c.out = batches.Get()
		c.out.emss = c.s.EMSS()
	}
	if c.enc.crc && !c.enc.markers && c.out.splits(n) || !c.out.fits(n, c.enc.pieces(payload, n, stage), c.most()) {
		return false
	}
	c.enc.encode(c.out, head, payload, n, stage)
	return true
}

// Prefault loads payload into memory before its digest is computed: see transport.Prefaulter.
func (c *Conn) Prefault(payload [][]byte) { transport.Prefault(c.s, payload) }

// appendSmall is Append for one short run of payload, which is copied in any case, if
// the batch clearly has room for it.
func (c *Conn) appendSmall(head []byte, payload [][]byte) bool {
	b := c.out
	if b == nil || c.sendErr != nil || len(payload) != 1 {
		return false
	}
	n := len(head) + len(payload[0])
	if n >= lendMin || n == 0 || c.enc.markers || !b.grows || chunkSize-b.fill < wholeSize(n) || b.bytes+n > c.most() || c.enc.crc && b.splits(n) {
		return false
	}
	c.enc.whole(b, head, payload, n)
	return true
}

// most returns how many octets a batch may hold.
func (c *Conn) most() int {
	if c.enc.crc {
		return digestBytes
	}
	return batchBytes
}

// Flush implements [transport.LLP]: it writes the batch. It returns ErrFenced if this end is
// the responder, and the initiator's first FPDU has not arrived (RFC 5044 section 7.1.2 rule 4);
// try again after the first Segment.
func (c *Conn) Flush(wait bool) error {
	if c.sendErr != nil {
		return c.sendErr
	}
	if c.out == nil {
		return nil
	}
	if c.fenced.Load() {
		return transport.ErrFenced
	}
	for len(c.out.pending()) > 0 {
		n, err := c.s.Write(c.out.pending(), wait)
		c.out.drop(n)
		if errors.Is(err, transport.ErrAgain) {
			return transport.ErrAgain
		}
		if err != nil {
			c.failSend(c.lost(err))
			return c.sendErr
		}
	}
	c.out.release()
	c.out = nil
	return nil
}

// Stage implements [transport.LLP]: it copies what was lent to the batch.
func (c *Conn) Stage() {
	if c.out != nil {
		c.out.stage()
	}
}

func (c *Conn) failSend(err error) {
	c.sendErr = err
	if c.out != nil {
		c.out.release()
		c.out = nil
	}
}
