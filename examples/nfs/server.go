package main

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/willscott/go-nfs"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/sockerr"
	"github.com/goiwarp/iwarp/rpcrdma"
)

type options struct {
	listen, mount, tcp string
	root               string
	readOnly, noCRC    bool
}

// stopWithin is how long calls in progress may take when the server stops.
const stopWithin = 5 * time.Second

// A server serves one directory.
type server struct {
	fs      *filesystem
	rnic    *iwarp.RNIC
	rdma    *rpcrdma.Listener
	streams []*stream // of MOUNT, and of NFS over TCP
	id      [8]byte   // the write verifier that go-nfs returns; another one would mean that written data may be lost
	tasks   sync.WaitGroup
	failed  chan error
}

// quiet stops the log of go-nfs, which takes missing files for errors. The process has only one such logger.
var quiet = sync.OnceFunc(func() { nfs.Log.SetLevel(nfs.FatalLevel) })

// start begins to serve.
func start(ctx context.Context, o *options) (*server, error) {
	s := &server{failed: make(chan error, 3)}
	_, _ = rand.Read(s.id[:]) // never fails
	if err := s.open(ctx, o); err != nil {
		s.stop()
		return nil, err
	}
	quiet()
	h := newHandler(s.fs)
	s.serve(s.rdma, h)
	for _, t := range s.streams {
		s.serve(t, h)
	}
	return s, nil
}

// open opens the directory and the listeners.
func (s *server) open(ctx context.Context, o *options) (err error) {
	if s.fs, err = newFilesystem(o.root, o.readOnly); err != nil {
		return err
	}
	if s.rnic, err = iwarp.Open(nil); err != nil {
		return err
	}
	l, err := s.rnic.Listen(ctx, "tcp", o.listen, nil)
	if err != nil {
		return err
	}
	s.rdma = rpcrdma.NewListener(l, &rpcrdma.Config{RNIC: s.rnic, QP: iwarp.QPConfig{MPA: iwarp.MPAOptions{NoCRC: o.noCRC}}})
	for _, addr := range []string{o.mount, o.tcp} {
		if addr == "" {
			continue
		}
		t, err := net.Listen("tcp", addr)
		if err != nil {
			return err
		}
		s.streams = append(s.streams, newStream(t))
	}
	return nil
}

// serve serves NFS and MOUNT on the connections of a listener.
func (s *server) serve(l net.Listener, h nfs.Handler) {
	s.tasks.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				if _ = l.Close(); !errors.Is(err, net.ErrClosed) {
					s.failed <- err
				}
				return
			}
			s.handOver(c, h)
		}
	})
}

// stop answers the calls in progress, ends all connections, and releases all resources.
func (s *server) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	for _, t := range s.streams {
		t.end()
	}
	if s.rdma != nil {
		_ = s.rdma.Shutdown(ctx) // a client repeats a call that has just arrived
	}
	s.tasks.Wait()
	if s.rnic != nil {
		_ = s.rnic.Shutdown(ctx)
	}
	if s.fs != nil {
		_ = s.fs.root.Close()
	}
}

// A stream is a listener that can end its connections.
type stream struct {
	net.Listener
	ended context.Context
	cease context.CancelFunc
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func newStream(l net.Listener) *stream {
	s := &stream{Listener: l, conns: make(map[net.Conn]struct{})}
	s.ended, s.cease = context.WithCancel(context.Background())
	return s
}

func (s *stream) Accept() (net.Conn, error) {
	c, err := sockerr.Accept(s.ended, s.Listener)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.Err() != nil {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	s.conns[c] = struct{}{}
	return &streamConn{Conn: c, of: s}, nil
}

func (s *stream) end() {
	_ = s.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cease()
	for c := range s.conns {
		_ = c.Close()
	}
}

// A streamConn is a connection that its listener forgets when it is closed.
type streamConn struct {
	net.Conn
	of *stream
}

func (c *streamConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
