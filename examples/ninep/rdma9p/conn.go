package rdma9p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"

	"github.com/goiwarp/iwarp"
)

// A conn is the stream of one connection that a handler sees: the handler reads the messages of the peer one after the other,
// and writes answers. A conn has no goroutine for that: the handler's own goroutines wait for messages and for room.
type conn struct {
	cfg  *Config
	qp   *iwarp.QP
	log  *slog.Logger
	ctx  context.Context // ends when no more messages are to be read
	stop context.CancelFunc

	// Fields of the goroutine that reads.
	wcs     [16]iwarp.WC
	pending []iwarp.WC // completions that were taken from the CQ, a part of wcs
	msg     []byte     // the unread part of the message
	id      uint64     // of the message's receive
	held    bool       // that receive is not posted again yet
	tag     uint16     // of the message
	short   [inlineSize]byte

	// writing is held by Write. It comes before mu and before the lock of sends.
	writing sync.Mutex
	broken  error // of the Write that failed; nil: none has
	out     assembler
	outPlan plan
	outBuf  int
	small   [inlineSize]byte
	flushes [inlineSize]byte

	changed chan struct{} // holds a token when requests have left the table
	idle    chan struct{} // holds a token when there may be no request left, and the connection is to end

	mu    sync.Mutex // locked before the locks of the QP
	sess  *session
	first bool // the first receive contains a Tversion, and is not posted again yet
	recvs receives
	sends sends
	err   error // why the connection was aborted
	// The connection is to end: left of the messages that have arrived may still be read, until it is closed.
	stopping, closed bool
	left             int
}

func newConn(ctx context.Context, cfg *Config, shared *sharedReceives) *conn {
	ctx, stop := context.WithCancel(ctx)
	return &conn{
		cfg: cfg, ctx: ctx, stop: stop, left: cfg.Depth, changed: make(chan struct{}, 1), idle: make(chan struct{}, 1),
		sess:  newSession(cfg.MaxMsize, cfg.Depth, cfg.MaxFids, cfg.ReadOnly),
		recvs: receives{shared: shared}, sends: sends{depth: cfg.Depth + spareSends},
	}
}

// Read reads octets of the messages of the peer. It waits only at the beginning of a message. At the end of the connection, or of Serve,
// it returns io.EOF.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(c.msg) == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.msg)
	c.msg = c.msg[n:]
	if len(c.msg) == 0 {
		if err := c.wasRead(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// next takes the next message, which may be for the handler or for the adapter.
func (c *conn) next() error {
	msg, err := c.receive()
	if err != nil {
		return err
	}
	h, err := checkMessage(msg)
	if err != nil {
		return c.fail(err)
	}
	if err := c.await(h); err != nil {
		return err
	}
	v, out, err := c.take(msg)
	switch {
	case errors.Is(err, io.EOF):
		return err
	case err != nil:
		return c.fail(err)
	case v == deliver:
		c.msg, c.tag = msg, h.tag
		return nil
	}
	return c.answer(out)
}

// take passes a message to the session, if the connection is not to end.
func (c *conn) take(msg []byte) (verdict, []byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		if c.closed || c.left == 0 {
			return answer, nil, io.EOF
		}
		c.left--
	}
	v, out, err := c.sess.take(msg, c.short[:0])
	c.first = v == deliver && c.id == firstID
	return v, out, err
}

// receive waits for a message. It does so without a context, since a context that can end costs allocations.
func (c *conn) receive() ([]byte, error) {
	if len(c.pending) == 0 {
		n, err := c.qp.RecvCQ().Wait(context.Background(), c.wcs[:])
		if err != nil {
			return nil, c.over(err)
		}
		c.pending = c.wcs[:n]
	}
	wc := &c.pending[0]
	c.id = wc.ID
	if err := wc.Err(); err != nil {
		return nil, c.over(err) // the completion stays, for recover
	}
	c.pending, c.held = c.pending[1:], true
	if wc.Op != iwarp.OpRecv {
		return nil, c.fail(fmt.Errorf("%w: Immediate Data", ErrProtocol))
	}
	return c.recvs.octets(c.id, int(wc.Len)), nil
}

// over returns what a reader gets when there is no message because of err.
func (c *conn) over(err error) error {
	if c.ctx.Err() != nil || c.qp.Err() == nil && errors.Is(err, net.ErrClosed) {
		return io.EOF
	}
	return err
}

// await waits until a message may be taken.
func (c *conn) await(h header) error {
	for {
		c.mu.Lock()
		ready := c.sess.ready(h)
		c.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-c.changed:
		case <-c.qp.Done():
			return c.over(net.ErrClosed)
		case <-c.ctx.Done():
			return io.EOF
		}
	}
}

// wasRead posts the receive of a message again when the handler has read the message, before it can answer. After the first Tversion it
// is not known yet which receives are to be posted.
func (c *conn) wasRead() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sess.wasRead(c.tag)
	if c.first {
		return nil
	}
	return c.postAgain()
}

// postAgain posts the receive of the message again. A QP whose peer has ended its half refuses this, but messages may still be in the
// CQ. mu must be held.
func (c *conn) postAgain() error {
	c.held = false
	if err := c.recvs.post(c.id); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// answer posts the receive of a message that the handler does not see again, and sends the answer if there is one now.
func (c *conn) answer(out []byte) error {
	c.mu.Lock()
	err := c.postAgain()
	c.mu.Unlock()
	if err != nil || len(out) == 0 {
		return err
	}
	return c.sendInline(out)
}

func (c *conn) sendInline(msg []byte) error {
	if err := c.sends.slot(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sends.postInline(msg)
}

// Write takes octets of answers. When an answer is complete, it is sent as one message. After an error, Write returns the same error again.
func (c *conn) Write(p []byte) (n int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for c.broken == nil && n < len(p) {
		n += c.out.add(p[n:])
		c.broken = c.advance()
	}
	return n, c.broken
}

// advance continues when the header of an answer, or the whole answer, is complete. An error ends the connection: the peer would wait
// for the answer.
func (c *conn) advance() (err error) {
	if c.out.hasHeader() {
		err = c.begin()
	}
	if err == nil && c.out.complete() {
		err = c.finish()
		c.out.reset()
	}
	if err == nil || errors.Is(err, net.ErrClosed) {
		return err
	}
	return c.fail(err)
}

// begin finds a place for an answer whose header is complete.
func (c *conn) begin() error {
	h := parseHeader(c.out.head[:])
	c.mu.Lock()
	p, err := c.sess.plan(h)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	c.outPlan, c.outBuf = p, noBuffer
	switch {
	case p == discard:
		c.log.Warn("9p: the handler answered a request that does not wait", "tag", h.tag, "type", h.typ)
		c.out.begin(h.size, nil)
		return nil
	case p == refuse:
		c.log.Warn("9p: the answer of the handler is too long", "tag", h.tag, "type", h.typ, "size", h.size)
		c.out.begin(h.size, nil)
		return c.sends.slot()
	case h.size <= inlineSize:
		c.out.begin(h.size, c.small[:])
		return c.sends.slot()
	}
	if c.outBuf, err = c.sends.buffer(); err != nil {
		return err
	}
	c.out.begin(h.size, c.sends.octets(c.outBuf))
	return nil
}

// finish sends a complete answer, and the answers that have waited for it.
func (c *conn) finish() error {
	var msg []byte
	switch c.outPlan {
	case discard:
		return nil
	case refuse:
		msg = appendError(c.small[:0], parseHeader(c.out.head[:]).tag, eio)
	default:
		msg = c.out.body[:c.out.size]
	}
	if err := c.send(msg); err != nil {
		return err
	}
	for {
		c.mu.Lock()
		out, ok := c.sess.flushed(c.flushes[:0])
		c.mu.Unlock()
		if !ok {
			break
		}
		if err := c.sendInline(out); err != nil {
			return err
		}
	}
	wake(c.changed)
	if c.ctx.Err() != nil {
		wake(c.idle)
	}
	return nil
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// send posts an answer. If the answer begins a session, it first posts the session's receives.
func (c *conn) send(msg []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	msg, err := c.sess.answered(msg)
	if err == nil {
		err = c.prepareReceives()
	}
	switch {
	case err != nil:
		return err
	case c.outBuf == noBuffer:
		return c.sends.postInline(msg)
	}
	return c.sends.post(c.outBuf, len(msg))
}

// prepareReceives posts the receives of a session that begins, or the first receive again if none begins. mu must be held.
func (c *conn) prepareReceives() error {
	msize := int(c.sess.granted)
	if msize != 0 && c.sends.bufs == nil {
		if err := c.sends.grow(c.cfg.QP.PD, c.cfg.Depth, msize); err != nil {
			return err
		}
		if c.recvs.shared == nil {
			c.first = false
			return c.recvs.grow(c.cfg.QP.PD, c.cfg.Depth, msize)
		}
	}
	if !c.first {
		return nil
	}
	c.first = false
	return c.recvs.post(firstID)
}

// began reports whether there has been a session.
func (c *conn) began() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sess.granted != 0
}

// fail ends the connection at once, because of err.
func (c *conn) fail(err error) error {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	if e := c.qp.Abort(); e != nil {
		c.log.Warn("9p: connection not aborted in time", "err", e)
	}
	return err
}
