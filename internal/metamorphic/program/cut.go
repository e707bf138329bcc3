package program

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/goiwarp/iwarp/transport"
)

// A cutter stands between the two ends of a connection over TCP or a pipe, and ends it after
// so many octets.
type cutter struct {
	listener net.Listener

	mu    sync.Mutex
	conns [2]net.Conn // to the initiator, and to the responder
	left  [2]int      // octets of each end that still pass; -1: all
	fin   bool        // the connection ends, instead of being reset
	isCut bool
	all   sync.WaitGroup
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
	c := &cutter{listener: l, left: [2]int{-1, -1}}
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
		n, last := c.pass(side, n)
		if _, werr := to.Write(b[:n]); werr != nil || err != nil && !errors.Is(err, io.EOF) {
			last = true
		}
		if last {
			c.cut()
			return
		}
		if err != nil {
			_ = to.(interface{ CloseWrite() error }).CloseWrite() // net.TCPConn and the pipe have it
			return
		}
	}
}

// pass tells how many of n octets pass, and whether they are the last.
func (c *cutter) pass(side, n int) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left[side] < 0 {
		return n, c.isCut
	}
	n = min(n, c.left[side])
	c.left[side] -= n
	return n, c.left[side] == 0
}

// arm cuts the connection when so many more octets of an end have passed.
func (c *cutter) arm(side, octets int, fin bool) {
	c.mu.Lock()
	c.left[side], c.fin = octets, fin
	c.mu.Unlock()
	if octets == 0 {
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
	for _, conn := range c.conns {
		if conn == nil {
			continue
		}
		if !c.fin {
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
