package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"

	"github.com/goiwarp/iwarp"
)

// maxClients bounds the connections that are served at a time.
const maxClients = 256

// A server lets clients put files into a directory and get files out of it.
type server struct {
	rnic     *iwarp.RNIC
	pd       *iwarp.PD
	listener *iwarp.Listener
	root     *os.Root
	noCRC    bool
	log      *slog.Logger
}

// listen opens dir and begins to listen. The server must be run, which also closes it.
func listen(ctx context.Context, k link, addr, dir string, log *slog.Logger) (_ *server, err error) {
	s := &server{noCRC: k.noCRC, log: log}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.root, err = os.OpenRoot(dir); err != nil {
		return nil, err
	}
	cfg := iwarp.Config{Logger: log, Limits: iwarp.Limits{MaxQP: maxClients}}
	if s.rnic, err = k.open(cfg); err != nil {
		return nil, err
	}
	if s.pd, err = s.rnic.AllocPD(); err != nil {
		return nil, err
	}
	s.listener, err = s.rnic.Listen(ctx, k.network, addr, nil)
	return s, err
}

func (s *server) addr() net.Addr { return s.listener.Addr() }

// run serves until ctx ends, and returns when every session has cleaned up.
func (s *server) run(ctx context.Context) error {
	defer s.close()
	ctx, cancel := context.WithCancel(ctx)
	var sessions sync.WaitGroup
	defer sessions.Wait()
	defer cancel()
	for {
		req, err := s.listener.Accept(ctx)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		sessions.Go(func() { s.serve(ctx, req) })
	}
}

// serve takes one client from its connection request to its end.
func (s *server) serve(ctx context.Context, req *iwarp.ConnRequest) {
	log := s.log.With("client", req.RemoteAddr())
	ss := &session{control: control{pd: s.pd}, root: s.root, log: log}
	qp, err := req.Accept(ctx, &iwarp.QPConfig{
		PD:    s.pd,
		Setup: ss.setup,
		MPA:   iwarp.MPAOptions{NoCRC: s.noCRC},
	})
	if err == nil {
		err = ss.run(ctx)
		if err != nil {
			_ = qp.Abort()
		} else {
			err = qp.Close()
		}
	}
	if cerr := deregister(ss.mr); err == nil {
		err = cerr
	}
	if err != nil && ctx.Err() == nil {
		log.Warn("connection failed", "err", err)
	}
}

// close releases whatever listen has got.
func (s *server) close() {
	if s.rnic != nil {
		_ = s.rnic.Close()
	}
	if s.root != nil {
		_ = s.root.Close()
	}
}
