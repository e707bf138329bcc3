package mpa

import (
	"errors"
	"net"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/errtext"
	"github.com/goiwarp/iwarp/transport"
)

// A Conn is an MPA connection in Full Operation: a [transport.LLP] over a
// [transport.Stream]. Segments arrive in the sender's order. What may be called
// from which goroutine is said by LLP.
//
// A Conn borrows memory while something is on its way: about 1 MiB for a
// staged batch, 512 KiB while it reads, 72 KiB while it is parked with a part of
// an FPDU. An idle one that is armed has none.
type Conn struct {
	s     transport.Stream
	limit MULPDU // the largest ULPDU asked for

	// The sending half.
	enc     encoder
	out     *batch // nil: empty
	sendErr error
	fenced  atomic.Bool

	// The receiving half.
	dec       decoder
	in        readBuffer
	held      fpdu             // decoded, and not taken by the Placer yet
	lent      bool             // held is with the Placer
	fault     *transport.Fault // of the framing, behind what is held
	seq       uint64
	bulk      bool  // the last read brought more than a small buffer takes
	dry       bool  // the last read brought nothing: to try once more before waiting is in vain
	later     error // came together with octets
	recvErr   error // ended the half
	usual     int   // the longest ULPDU of late
	blind     int   // reads to come that predict nothing
	predicted bool  // what came last had been predicted

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

// MaxULPDU is the MULPDU of the stream's EMSS now, and no more than
// Options.MaxULPDU.
func (c *Conn) MaxULPDU() int {
	return int(min(MULPDUFor(c.s.EMSS(), c.enc.markers), c.limit))
}

// Arm asks for ready to be called when octets can be read. The Placer must not
// be holding a segment back, because that is nothing that the stream knows of.
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

// Close releases the stream. What was flushed still goes out.
func (c *Conn) Close() error {
	c.closed.Store(true)
	return c.s.Close()
}

// Abort resets the stream. The first cause is what every call returns from then
// on, wrapped together with net.ErrClosed.
func (c *Conn) Abort(cause error) {
	c.aborted.CompareAndSwap(nil, &errtext.Aborted{What: "mpa: connection", Cause: cause})
	// The stream is gone either way: there is nothing to do about an error.
	_ = c.s.Abort()
}

// Fenced reports whether this end is a responder that may not send yet: see Flush.
func (c *Conn) Fenced() bool { return c.fenced.Load() }

// Caps tells whether CRCs are in use and whether the stream is secure.
func (c *Conn) Caps() transport.Caps {
	return transport.Caps{Digest: c.enc.crc, Secure: c.s.Secure()}
}

// Path is the stream's.
func (c *Conn) Path() string { return c.s.Path() }

// TCPInfo is that of the stream.
func (c *Conn) TCPInfo() (transport.TCPInfo, bool) { return transport.InfoOf(c.s) }

// LocalAddr is the stream's.
func (c *Conn) LocalAddr() net.Addr { return c.s.LocalAddr() }

// RemoteAddr is the stream's.
func (c *Conn) RemoteAddr() net.Addr { return c.s.RemoteAddr() }

// lost is what err, met on the stream, means to the caller.
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
