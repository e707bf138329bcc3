package transfer

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/internal/program"
)

// maxClients bounds the number of connections that are served at a time.
const maxClients = 256

// A Server lets clients put files into a directory and get files out of it.
type Server struct {
	rnic     *iwarp.RNIC
	pd       *iwarp.PD
	listener *iwarp.Listener
	root     *os.Root
	noCRC    bool
	log      *slog.Logger
}

// Listen opens dir and begins to listen. The caller must call Run, which also closes the server.
func Listen(ctx context.Context, k Link, addr, dir string, log *slog.Logger) (_ *Server, err error) {
	s := &Server{noCRC: k.NoCRC, log: log}
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
	s.listener, err = s.rnic.Listen(ctx, k.Network, addr, nil)
	return s, err
}

// Addr returns the address that the server listens at.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// RNIC returns the RNIC of the server's connections. Run closes it.
func (s *Server) RNIC() *iwarp.RNIC { return s.rnic }

// Run serves until ctx ends, and returns when every session has cleaned up. The server of a Demonstration also ends with the process
// that has started it.
func (s *Server) Run(ctx context.Context) error {
	defer s.close()
	ctx, cancel := context.WithCancel(ctx)
	if os.Getenv(childEnv) != "" {
		program.WhenParentEnds(os.Stdin, cancel)
	}
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

// serve serves one client from its connection request to its end.
func (s *Server) serve(ctx context.Context, req *iwarp.ConnRequest) {
	log := s.log.With("client", req.RemoteAddr().String())
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

// close releases what Listen has opened.
func (s *Server) close() {
	if s.rnic != nil {
		_ = s.rnic.Close()
	}
	if s.root != nil {
		_ = s.root.Close()
	}
}
