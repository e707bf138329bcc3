package mpa

import (
	"errors"
	"net"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/transport"
)

// A Conn is an MPA connection in Full Operation: a [transport.LLP] over a
// [transport.Stream]. Segments arrive in the sender's order. LLP says which goroutine
// may call which method.
//
// A Conn borrows memory while data is being transferred: about 1 MiB for a
// staged batch, 512 KiB while it reads, 72 KiB while it is parked with a part of
// an FPDU. An idle Conn that is armed has none.
type Conn struct {
	s     transport.Stream
	limit MULPDU // of Options.MaxULPDU

	// The sending half.
	enc     encoder
	out     *batch // nil: empty
	sendErr error
	fenced  atomic.Bool

	// The receiving half.
	dec       decoder
	in        readBuffer
	held      fpdu             // decoded, and not accepted by the Placer yet
	lent      bool             // the Placer is processing held
	fault     *transport.Fault // of the framing, after held
	seq       uint64
	bulk      bool  // the last read returned more than a small buffer holds
	dry       bool  // the last read returned nothing: another attempt before waiting is in vain
	later     error // was returned together with octets
	recvErr   error // ended the half
	usual     int   // the longest recent ULPDU
	blind     int   // number of next reads that predict nothing
	predicted bool  // the last read was predicted

	closed  atomic.Bool
	aborted atomic.Pointer[errtext.Aborted]
}

var _ transport.LLP = (*Conn)(nil)

// newConn begins Full Operation on s, whose set-up is over.
func newConn(s transport.Stream, o Options, t *Terms) *Conn {
	c := &Conn{s: transport.Detach(s), limit: o.limit()}
	c.enc.markers, c.enc.crc = t.SendMarkers, t.CRC
	c.dec.markers, c.dec.crc = t.ReceiveMarkers, t.CRC
	return c
}

// MaxULPDU returns the MULPDU for the current EMSS of the stream, but at most
// Options.MaxULPDU.
func (c *Conn) MaxULPDU() int {
	return int(min(MULPDUFor(c.s.EMSS(), c.enc.markers), c.limit))
}

// Arm arranges that ready is called when octets can be read. The Placer must not
// be holding a segment back, because the stream does not know of it.
func (c *Conn) Arm(ready func()) bool {
	c.in.shrink()
	return c.s.Arm(ready)
}

// Disarm cancels Arm.
func (c *Conn) Disarm() { c.s.Disarm() }

// Wake makes a Receive that waits return ErrWoken.
func (c *Conn) Wake() { c.s.Wake() }

// CloseSend ends the sending half: FIN. The receiving half goes on.
func (c *Conn) CloseSend() error { return c.s.CloseWrite() }

// Close releases the stream. What was flushed is still sent.
func (c *Conn) Close() error {
	c.closed.Store(true)
	return c.s.Close()
}

// Abort resets the stream. The first cause is what every call returns from then
// on, wrapped together with net.ErrClosed.
func (c *Conn) Abort(cause error) {
	c.aborted.CompareAndSwap(nil, &errtext.Aborted{What: "mpa: connection", Cause: cause})
	// The stream is gone either way: nothing can be done about an error.
	_ = c.s.Abort()
}

// Fenced reports whether this end is a responder that may not send yet: see Flush.
func (c *Conn) Fenced() bool { return c.fenced.Load() }

// Caps reports whether CRCs are in use and whether the stream is secure.
func (c *Conn) Caps() transport.Caps {
	return transport.Caps{Digest: c.enc.crc, Secure: c.s.Secure()}
}

// Path returns the Path of the stream.
func (c *Conn) Path() string { return c.s.Path() }

// TCPInfo returns the TCPInfo of the stream.
func (c *Conn) TCPInfo() (transport.TCPInfo, bool) { return transport.InfoOf(c.s) }

// LocalAddr returns the local address of the stream.
func (c *Conn) LocalAddr() net.Addr { return c.s.LocalAddr() }

// RemoteAddr returns the remote address of the stream.
func (c *Conn) RemoteAddr() net.Addr { return c.s.RemoteAddr() }

// lost returns the error for the caller after err of the stream.
func (c *Conn) lost(err error) error {
	if a := c.aborted.Load(); a != nil {
		return a
	}
	if c.closed.Load() {
		return net.ErrClosed
	}
	return &transport.Fault{Code: transport.MPAConnectionLost, Err: err}
}

var errDiscarded = errors.New("mpa: the receiving half was given up")
