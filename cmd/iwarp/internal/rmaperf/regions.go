package rmaperf

import (
	"context"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/authmode"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/rma"
	"github.com/goiwarp/iwarp/solicit"
)

const (
	// heldRegion is the number of the region whose accesses can be made to wait.
	heldRegion = 1 << 32
	// depth is how many requests each connection may have unanswered.
	depth = 64
	// smallSize is the length of the operations whose latency is measured.
	smallSize = 64
	// tag is what sealing adds.
	tag = 16
	// ample is a window for which nothing waits.
	ample = 32 << 20
	// cachedKeys is more traffic keys than any measurement uses, with two for each read.
	cachedKeys = 1 << 15
)

// A side is an RNIC with a PD.
type side struct {
	rnic *iwarp.RNIC
	pd   *iwarp.PD
}

func newSide() (s side, err error) {
	if s.rnic, err = iwarp.Open(nil); err != nil {
		return s, err
	}
	s.pd, err = s.rnic.AllocPD()
	return s, err
}

// regions is an rma.Server.
type regions struct {
	side

	what   *service
	lc     iwarp.ListenConfig
	server *rma.Server
	held   *held
	all    []*rma.Region
}

func newRegions(what *service) (s *regions, err error) {
	s = &regions{what: what}
	if s.side, err = newSide(); err != nil {
		return nil, err
	}
	if err := authmode.Respond(authOf(what.Sealed), &s.lc); err != nil {
		return nil, err
	}
	cfg := rma.ServerConfig{
		PD: s.pd, Insecure: !what.Sealed, MaxOp: what.MaxOp, Depth: depth,
		CacheSize: cachedKeys, ScratchLimit: 2 * ample,
		Dispatch: [2]time.Duration{-1, -1},
	}
	window := int64(ample)
	if what.Tight {
		window, cfg.QueueDepth, cfg.PullTimeout = smallSize+tag, 1, 30*time.Second
	}
	if cfg.Solicitor, err = rma.NewSolicitor(solicit.Config{Fixed: window}); err != nil {
		return nil, err
	}
	s.server = rma.NewServer(&cfg)
	s.held = newHeld(rma.NewMemory(peer.SourceOf(what.Size)))
	if err := s.register(heldRegion, s.held); err != nil {
		return nil, err
	}
	for i := range what.Regions {
		if err := s.register(uint64(i+1), rma.NewMemory(peer.SourceOf(what.Size))); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *regions) register(number uint64, b iwarp.Buffer) error {
	r, err := s.server.Register(number, b, &rma.RegionOptions{Ops: rma.MayRead | rma.MayWrite | rma.MayManage})
	s.all = append(s.all, r)
	return err
}

// authOf returns the mode in which both sides authenticate each other.
func authOf(sealed bool) string {
	if sealed {
		return authmode.B
	}
	return authmode.Plain
}

// take serves a connection until it ends.
func (s *regions) take(ctx context.Context, c net.Conn) error {
	setup, stop := context.WithTimeout(ctx, peer.Timeout)
	defer stop()
	cr, err := s.rnic.Server(setup, c, &s.lc)
	if err != nil {
		return err
	}
	cfg := iwarp.QPConfig{PD: s.pd, MPA: iwarp.MPAOptions{NoCRC: !s.what.CRC}}
	if err := rma.Prepare(s.rnic, &cfg, depth, 0); err != nil {
		return err
	}
	qp, err := cr.Accept(setup, &cfg)
	if err != nil {
		_ = cfg.SendCQ.Close() // nothing else uses it
		return err
	}
	return s.server.Serve(ctx, qp)
}

func (s *regions) close() error {
	s.held.release()
	return s.rnic.Close()
}
