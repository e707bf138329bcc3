package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/willscott/go-nfs"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/internal/program"
	"github.com/goiwarp/iwarp/rpcrdma"
)

type options struct {
	listen, mount, tcp string
	root               string
	readOnly, noCRC    bool
}

// stopWithin is how long calls in hand have when the server stops.
const stopWithin = 5 * time.Second

// A server serves one directory.
type server struct {
	fs      *filesystem
	rnic    *iwarp.RNIC
	rdma    *rpcrdma.Listener
	streams []*stream // of MOUNT, and of NFS over TCP
	tasks   sync.WaitGroup
	failed  chan error
}

// quiet makes go-nfs log nothing, since it takes missing files for errors. Its logger is one for the process.
var quiet = sync.OnceFunc(func() { nfs.Log.SetLevel(nfs.FatalLevel) })

// start begins to serve.
func start(ctx context.Context, o *options) (*server, error) {
	s := &server{failed: make(chan error, 3)}
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
		if err := nfs.Serve(l, h); !errors.Is(err, net.ErrClosed) {
			s.failed <- err
		}
	})
}

// stop answers the calls in hand, ends all connections, and gives everything back.
func (s *server) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	for _, t := range s.streams {
		t.end()
	}
	if s.rdma != nil {
		_ = s.rdma.Shutdown(ctx) // a call that came just now is repeated by its client
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
	conns map[*streamConn]struct{}
}

func newStream(l net.Listener) *stream {
	s := &stream{Listener: l, conns: make(map[*streamConn]struct{})}
	s.ended, s.cease = context.WithCancel(context.Background())
	return s
}

func (s *stream) Accept() (net.Conn, error) {
	c, err := program.Accept(s.ended, s.Listener)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.Err() != nil {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	own := &streamConn{Conn: c, of: s}
	own.left = time.AfterFunc(leftAfter, func() { _ = own.Close() })
	s.conns[own] = struct{}{}
	return own, nil
}

func (s *stream) end() {
	_ = s.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cease()
	for c := range s.conns {
		c.left.Stop()
		_ = c.Conn.Close()
	}
}

// leftAfter is how long go-nfs may be busy with one call.
const leftAfter = 5 * time.Minute

// A streamConn is a connection that its listener forgets when it is closed, or has failed, or is not read from any more: go-nfs closes
// neither one that has failed nor one whose RPC it cannot parse.
type streamConn struct {
	net.Conn
	of   *stream
	left *time.Timer // runs while no Read does
}

func (c *streamConn) Read(p []byte) (int, error) {
	c.left.Stop()
	n, err := c.Conn.Read(p)
	if err != nil {
		_ = c.Close()
	} else {
		c.left.Reset(leftAfter)
	}
	return n, err
}

func (c *streamConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.left.Stop()
	c.of.mu.Unlock()
	return c.Conn.Close()
}
