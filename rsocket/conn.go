package rsocket

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rsocket/internal/stream"
	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// A Conn is a stream socket. It is a net.Conn, with CloseWrite, ReadFrom and WriteTo. All methods may
// be called from any goroutine.
type Conn struct {
	qp            *iwarp.QP
	mem           *memory
	local, remote net.Addr
	order         wire.Order // of messages
	lenient       bool
	born          time.Time
	done          chan struct{} // closed when the QP has ended and its memory was released

	mu     sync.Mutex
	stream *stream.Stream
	state  state
	cause  error // of the end of the QP, if this side found it
	rd, wr side
	end    side      // of Close
	closed bool      // the program has called Close
	late   bool      // Close has waited long enough
	taking bool      // a goroutine takes completions, or is about to
	left   sync.Cond // that goroutine has stopped taking them

	settler func() // settle, created once, because a go statement would allocate it

	posted, completed uint64 // messages

	out outbox
	in  inbox
	wcs [16]iwarp.WC
}

var (
	_ net.Conn      = (*Conn)(nil)
	_ io.ReaderFrom = (*Conn)(nil)
	_ io.WriterTo   = (*Conn)(nil)
)

// A state is the state of the QP of a Conn.
type state uint8

const (
	running state = iota
	ending        // it takes no more work
	ended         // and the CQ has been drained
)

func newConn(qp *iwarp.QP, m *memory, cfg *Config, peer wire.Private) *Conn {
	c := &Conn{
		qp: qp, mem: m, local: qp.LocalAddr(), remote: qp.RemoteAddr(),
		order: peer.Flags.Order(), lenient: cfg.LenientEOF, born: time.Now(), done: make(chan struct{}),
		stream: stream.New(stream.Config{
			Half: m.half(), Key: uint32(m.inMR.STag()), Credits: uint16(cfg.Credits), Ring: len(m.out),
			IOMap: wire.Entries(wire.ScaleEntries(cfg.IOMap)),
		}, peer),
	}
	c.rd.init(c)
	c.wr.init(c)
	c.end.init(c)
	c.left.L = &c.mu
	c.settler = c.settle
	c.mu.Lock()
	c.pump() // half of the memory is free, and the peer is told so at once
	c.mu.Unlock()
	go c.run()
	return c
}

// QP returns the queue pair, for its Stats, Peer and the like. Only the Conn may post work requests to it and
// close it.
func (c *Conn) QP() *iwarp.QP { return c.qp }

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the peer.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	return c.setDeadlines(t, &c.rd, &c.wr)
}

// SetReadDeadline sets the time at which Read and WriteTo fail, including calls that already wait.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, &c.rd) }

// SetWriteDeadline sets the time at which Write, ReadFrom, WriteMapped and Map fail, including calls that already wait. What they
// have taken is sent all the same.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, &c.wr) }

func (c *Conn) setDeadlines(t time.Time, sides ...*side) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.opError("set", net.ErrClosed)
	}
	for _, s := range sides {
		s.setDeadline(t)
	}
	return nil
}
