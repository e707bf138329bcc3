package damage

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/closed"
	"github.com/goiwarp/iwarp/transport"
)

// A Line stands between the two ends of a connection over TCP or a pipe. Side 0 is the initiator, side 1 the responder.
type Line struct {
	// BeforeCut, if not nil, is called when the last octet has passed, before the connection is ended. In virtual time, any
	// sleep lasts until the octets are received; a reset would otherwise destroy them.
	BeforeCut func()

	listener net.Listener

	mu     sync.Mutex
	conns  [2]net.Conn
	left   [2]int  // octets of each end that still pass; -1: all
	passed [2]int  // since Arm
	how    string  // what happens after them
	mute   [2]bool // nothing that an end sends passes
	held   chan struct{}
	isCut  bool
	closed chan struct{} // when isCut is set
	all    sync.WaitGroup
}

// NewLine listens for one connection, which it passes on to an address of the network: tcp or pipe.
func NewLine(ctx context.Context, network, to string) (*Line, error) {
	addr := "127.0.0.1:0"
	if network == "pipe" {
		addr = ""
	}
	l, err := transport.Listen(ctx, network, addr, transport.Options{})
	if err != nil {
		return nil, err
	}
	c := &Line{listener: l, left: [2]int{-1, -1}, held: closedChannel(), closed: make(chan struct{})}
	c.all.Go(func() {
		from, err := l.Accept()
		_ = l.Close()
		if err != nil {
			return
		}
		onward, err := transport.Dial(ctx, network, to, transport.Options{})
		if err != nil {
			_ = from.Close()
			return
		}
		c.mu.Lock()
		c.conns = [2]net.Conn{from, onward}
		c.mu.Unlock()
		c.all.Go(func() { c.forward(0) })
		c.all.Go(func() { c.forward(1) })
	})
	return c, nil
}

func closedChannel() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Addr returns the address that the initiator connects to.
func (c *Line) Addr() string { return c.listener.Addr().String() }

// forward passes on what one end sends.
func (c *Line) forward(side int) {
	from, to := c.conns[side], c.conns[1-side]
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		c.wait()
		n, then := c.pass(side, b[:n])
		if then == Stall {
			c.stall()
		}
		_, werr := to.Write(b[:n])
		switch {
		case then == Reset, werr != nil && !c.isMute(side), err != nil && !errors.Is(err, io.EOF):
			if then == Reset && c.BeforeCut != nil {
				c.BeforeCut()
			}
			c.Cut()
			return
		case then == HalfClose, err != nil:
			if then == HalfClose || !c.isMute(side) {
				_ = to.(interface{ CloseWrite() error }).CloseWrite() // net.TCPConn and the pipe have it
			}
			if err != nil {
				return
			}
		}
	}
}

// wait waits while the line is held.
func (c *Line) wait() {
	c.mu.Lock()
	held := c.held
	c.mu.Unlock()
	select {
	case <-held:
	case <-c.closed:
	}
}

// pass returns how many of the octets pass, and what happens then: Reset stands for any end of the connection.
func (c *Line) pass(side int, b []byte) (n int, then string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, then = c.decide(side, b)
	c.passed[side] += n
	return n, then
}

func (c *Line) decide(side int, b []byte) (n int, then string) {
	left := c.left[side]
	switch {
	case c.isCut:
		return len(b), Reset
	case c.mute[side]:
		return 0, ""
	case left < 0:
		return len(b), ""
	case len(b) < left, len(b) == left && c.how == Corrupt:
		c.left[side] -= len(b)
		return len(b), ""
	}
	c.left[side] = -1
	switch c.how {
	case Corrupt:
		if len(b) > 0 {
			b[left] ^= 0x10
		}
		return len(b), ""
	case Stall:
		return len(b), Stall
	case HalfClose:
		c.mute[side] = true
		return left, HalfClose
	case Vanish:
		c.mute = [2]bool{true, true}
		return left, ""
	default:
		return left, Reset
	}
}

func (c *Line) isMute(side int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mute[side]
}

// stall waits for the time For, or until the connection is cut.
func (c *Line) stall() {
	t := time.NewTimer(For)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.closed:
	}
}

// Arm makes how happen after octets more octets of an end have passed.
func (c *Line) Arm(side, octets int, how string) {
	c.mu.Lock()
	c.left[side], c.how = octets, how
	c.passed = [2]int{}
	now := octets == 0 && c.isFree() && slices.Contains([]string{Reset, FIN}, how)
	c.mu.Unlock()
	if now {
		c.Cut()
	}
}

// isFree reports whether the line is not held.
func (c *Line) isFree() bool { return closed.Is(c.held) }

// Hold keeps back what both ends send from now on, until Release.
func (c *Line) Hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = make(chan struct{})
}

// Release lets held octets pass.
func (c *Line) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isFree() {
		close(c.held)
	}
}

// Passed returns how many octets of an end have passed since Arm.
func (c *Line) Passed(side int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.passed[side]
}

// Cut ends the connection now: with a FIN if Arm asked for one, otherwise with a reset.
func (c *Line) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isCut {
		return
	}
	c.isCut = true
	close(c.closed)
	for _, conn := range c.conns {
		if conn == nil {
			continue
		}
		if c.how != FIN {
			switch conn := conn.(type) {
			case *net.TCPConn:
				_ = conn.SetLinger(0)
			case interface{ Abort() error }:
				_ = conn.Abort()
			}
		}
		_ = conn.Close()
	}
}

// Close ends the connection, and waits for the goroutines.
func (c *Line) Close() {
	_ = c.listener.Close()
	c.Cut()
	c.all.Wait()
}
