package streamperf

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/rsocket"
)

// sockets is a service of streams of octets, over any transport.
type sockets struct {
	l       net.Listener
	rnic    *iwarp.RNIC // nil: no RNIC is used
	stop    context.CancelFunc
	serving sync.WaitGroup
}

func newTCPStreams(ctx context.Context, what *service) (*sockets, error) {
	l, err := peer.Listen("127.0.0.1", "")
	if err != nil {
		return nil, err
	}
	return startSockets(ctx, &sockets{l: l}, what), nil
}

func newSockets(ctx context.Context, what *service) (*sockets, error) {
	n, err := newSide()
	if err != nil {
		return nil, err
	}
	l, err := rsocket.Listen(ctx, n.rnic, "tcp", "127.0.0.1:0", socketConfig(what))
	if err != nil {
		return nil, errors.Join(err, n.rnic.Close())
	}
	return startSockets(ctx, &sockets{l: l, rnic: n.rnic}, what), nil
}

func socketConfig(what *service) *rsocket.Config {
	return &rsocket.Config{QP: iwarp.QPConfig{MPA: mpaOf(what.CRC)}}
}

func startSockets(ctx context.Context, s *sockets, what *service) *sockets {
	ctx, s.stop = context.WithCancel(ctx)
	talk := takePieces
	if what.Kind == kindEcho {
		talk = echo
	}
	s.serving.Go(func() {
		for {
			c, err := s.l.Accept()
			if err != nil {
				return
			}
			s.serving.Go(func() {
				ended := context.AfterFunc(ctx, func() { _ = c.Close() })
				_ = talk(c, make([]byte, what.Size)) // the client sees why it has ended
				if ended() {
					_ = c.Close()
				}
			})
		}
	})
	return s
}

func (s *sockets) addr() string { return s.l.Addr().String() }

func (s *sockets) close() error {
	err := s.l.Close()
	s.stop()
	s.serving.Wait()
	if s.rnic != nil {
		err = errors.Join(err, s.rnic.Close())
	}
	return err
}

// takePieces reads as many pieces as the eight octets before them say, and answers with one octet.
func takePieces(c net.Conn, buf []byte) error {
	head := make([]byte, 8)
	for {
		if _, err := io.ReadFull(c, head); err != nil {
			return err
		}
		for left := binary.BigEndian.Uint64(head) * uint64(len(buf)); left > 0; {
			n, err := c.Read(buf[:min(left, uint64(len(buf)))])
			if err != nil {
				return err
			}
			left -= uint64(n)
		}
		if _, err := c.Write(head[:1]); err != nil {
			return err
		}
	}
}

// echo sends each message back.
func echo(c net.Conn, buf []byte) error {
	for {
		if _, err := io.ReadFull(c, buf); err != nil {
			return err
		}
		if _, err := c.Write(buf); err != nil {
			return err
		}
	}
}

// A socket is the client of a service of streams.
type socket struct {
	c    net.Conn
	head [8]byte
	buf  []byte
}

// pieces sends n pieces, and waits until they have been read.
func (k *socket) pieces(n int) error {
	binary.BigEndian.PutUint64(k.head[:], uint64(n))
	if _, err := k.c.Write(k.head[:]); err != nil {
		return err
	}
	for range n {
		if _, err := k.c.Write(k.buf); err != nil {
			return err
		}
	}
	_, err := io.ReadFull(k.c, k.head[:1])
	return err
}

// turns sends n messages, each when the one before it has come back.
func (k *socket) turns(n int) error {
	for range n {
		if _, err := k.c.Write(k.buf); err != nil {
			return err
		}
		if _, err := io.ReadFull(k.c, k.buf); err != nil {
			return err
		}
	}
	return nil
}

// socket opens a service with streams, and connects to it.
func (s *stand) socket(name string, what *service) (*contest.Contender, error) {
	addr, err := s.open(what)
	if err != nil {
		return nil, err
	}
	k := &socket{buf: peer.SourceOf(what.Size)}
	if k.c, err = s.connect(addr, what); err != nil {
		return nil, err
	}
	s.later(k.c.Close)
	run := k.pieces
	if what.Kind == kindEcho {
		run = k.turns
	}
	return &contest.Contender{Name: name, Size: what.Size, Run: run}, nil
}

// connect makes the connection of a stream.
func (s *stand) connect(addr string, what *service) (net.Conn, error) {
	if what.Kind == kindTCP {
		return peer.Dial(addr, "")
	}
	n, err := s.rnic()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(s.b.ctx, peer.Timeout)
	defer stop()
	return rsocket.Dial(ctx, n.rnic, "tcp", addr, socketConfig(what))
}
