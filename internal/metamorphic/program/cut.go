package program

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/transport"
)

// damageFor is how long what a damaged connection has lost is waited for, and how long a stall lasts.
const damageFor = 20 * time.Millisecond

// A cutter stands between the two ends of a connection over TCP or a pipe, and ends or damages it after
// so many octets.
type cutter struct {
	listener net.Listener

	mu     sync.Mutex
	conns  [2]net.Conn // to the initiator, and to the responder
	left   [2]int      // octets of each end that still pass; -1: all
	how    string      // what follows them, a value of how of Cut
	mute   [2]bool     // nothing passes that an end sends
	isCut  bool
	closed chan struct{} // when isCut is set
	all    sync.WaitGroup
}

// newCutter listens for one connection, which it passes on to an address.
func newCutter(ctx context.Context, network, to string) (*cutter, error) {
	addr := "127.0.0.1:0"
	if network == Pipe {
		addr = ""
	}
	l, err := transport.Listen(ctx, network, addr, transport.Options{})
	if err != nil {
		return nil, err
	}
	c := &cutter{listener: l, left: [2]int{-1, -1}, closed: make(chan struct{})}
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

func (c *cutter) addr() string { return c.listener.Addr().String() }

// forward passes on what one end sends.
func (c *cutter) forward(side int) {
	from, to := c.conns[side], c.conns[1-side]
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		n, then := c.pass(side, b[:n])
		if then == Stall {
			c.stall()
		}
		_, werr := to.Write(b[:n])
		switch {
		case then == "reset", werr != nil && !c.isMute(side), err != nil && !errors.Is(err, io.EOF):
			c.cut()
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

// pass tells how many of the octets pass, and what follows: reset for what ends the connection.
func (c *cutter) pass(side int, b []byte) (n int, then string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := c.left[side]
	switch {
	case c.isCut:
		return len(b), "reset"
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
		return left, "reset"
	}
}

func (c *cutter) isMute(side int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mute[side]
}

// stall waits for a moment, or until the connection is cut.
func (c *cutter) stall() {
	t := time.NewTimer(damageFor)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.closed:
	}
}

// arm cuts or damages the connection when so many more octets of an end have passed.
func (c *cutter) arm(side, octets int, how string) {
	c.mu.Lock()
	c.left[side], c.how = octets, how
	c.mu.Unlock()
	if octets == 0 && !slices.Contains(damages, how) {
		c.cut()
	}
}

// cut ends the connection now.
func (c *cutter) cut() {
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
		if c.how != "fin" {
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

// close ends the connection, and waits for the goroutines.
func (c *cutter) close() {
	_ = c.listener.Close()
	c.cut()
	c.all.Wait()
}
