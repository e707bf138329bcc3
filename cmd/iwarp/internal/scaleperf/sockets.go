package scaleperf

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/transport"
)

// messageLen is the length of a message of the busy connection, and of the buffer into which a TCP connection reads.
const messageLen = 64

// The purpose of a TCP connection, as its first message says. The message is as long as the Request of an enhanced set-up, and the
// answer is as long as the Reply.
const (
	greetingLen = 24
	sayIdle     = 'i'
	sayBusy     = 'b'
)

// sockets are plain TCP connections.
type sockets struct {
	silent time.Duration // how long a peer may be silent; 0: the default of package net

	mu     sync.Mutex
	held   []net.Conn
	talker net.Conn
	buf    [messageLen]byte
}

func (s *sockets) listen(_ context.Context, o *listenOrder) (addrs []string, err error) {
	for i := range o.Addrs {
		l, err := peer.Listen(loopback(i), "")
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, l.Addr().String())
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				if s.bound(c) == nil {
					go s.serve(c)
				}
			}
		}()
	}
	return addrs, nil
}

// serve serves a connection: it answers all messages.
func (s *sockets) serve(c net.Conn) {
	var greeting [greetingLen]byte
	if _, err := io.ReadFull(c, greeting[:]); err != nil {
		return
	}
	if _, err := c.Write(greeting[:]); err != nil {
		return
	}
	if greeting[0] == sayIdle {
		reads(c)
		return
	}
	for buf := make([]byte, messageLen); ; {
		if _, err := io.ReadFull(c, buf); err != nil {
			return
		}
		if _, err := c.Write(buf); err != nil {
			return
		}
	}
}

// reads waits for a message that never comes.
func reads(c net.Conn) {
	buf := make([]byte, messageLen)
	_, _ = io.ReadFull(c, buf) // ends with the process
}

// bound bounds how long the peer of c may be silent.
func (s *sockets) bound(c net.Conn) error {
	if s.silent == 0 {
		return nil
	}
	return transport.SetPeerTimeout(c, s.silent)
}

func (s *sockets) connect(addr string, what byte) (net.Conn, error) {
	c, err := peer.Dial(addr, "")
	if err == nil {
		err = s.bound(c)
	}
	if err != nil {
		return nil, err
	}
	greeting := [greetingLen]byte{what}
	if _, err = c.Write(greeting[:]); err == nil {
		_, err = io.ReadFull(c, greeting[:])
	}
	return c, err
}

func (s *sockets) dial(_ context.Context, o *dialOrder) error {
	var all sync.WaitGroup
	errs := make(chan error, o.Window)
	next := make(chan string)
	for range o.Window {
		all.Go(func() {
			for addr := range next {
				c, err := s.connect(addr, sayIdle)
				if err != nil {
					errs <- err // there is room: each worker sends one
					break
				}
				s.mu.Lock()
				s.held = append(s.held, c)
				s.mu.Unlock()
				go reads(c)
			}
			for range next { // drain the rest
			}
		})
	}
	for i := range o.N {
		next <- o.Addrs[i%len(o.Addrs)]
	}
	close(next)
	all.Wait()
	close(errs)
	return <-errs
}

func (s *sockets) busy(_ context.Context, addr string) (err error) {
	s.talker, err = s.connect(addr, sayBusy)
	return err
}

func (s *sockets) exchange() error {
	if _, err := s.talker.Write(s.buf[:]); err != nil {
		return err
	}
	_, err := io.ReadFull(s.talker, s.buf[:])
	return err
}

// loopback returns one of the addresses of this machine.
func loopback(i int) string { return fmt.Sprintf("127.0.0.%d", i+1) }
