package incast

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/bottleneck"
	"github.com/goiwarp/iwarp/solicit"
	"github.com/goiwarp/iwarp/stag"
)

const (
	// piece is how many octets are written, or read, at a time.
	piece = 16 << 10
	// victimSize is how many octets the Read has whose latency is measured.
	victimSize = 64
)

// A scene is a receiver, and hosts behind a link.
type scene struct {
	opts     *options
	link     *bottleneck.Link
	receiver *side
	hosts    *side // all of them
	window   *iwarp.Solicitor
	came     []byte // of each host size octets
	have     []byte // what each of the hosts sends
	sink     *iwarp.MR
	source   *iwarp.MR
	peers    []*peer
	victim   *peer
}

// A side is an RNIC with a PD.
type side struct {
	rnic *iwarp.RNIC
	pd   *iwarp.PD
}

func newSide() (s *side, err error) {
	s = new(side)
	if s.rnic, err = iwarp.Open(nil); err != nil {
		return nil, err
	}
	if s.pd, err = s.rnic.AllocPD(); err != nil {
		err = errors.Join(err, s.rnic.Close())
	}
	return s, err
}

// A peer is a connection between the receiver and a host.
type peer struct {
	near, far *iwarp.QP
	to        iwarp.RemoteBuffer // the receiver's memory for the host
	from      iwarp.RemoteBuffer // the host's
	first     int                // where that begins in the sink
}

// open makes the scene, with a Solicitor if the receiver reads.
func (o *options) open(ctx context.Context, solicited bool) (s *scene, err error) {
	s = &scene{opts: o, link: bottleneck.New(bottleneck.Options{Rate: o.rate, Latency: o.latency, Sleep: o.sleep})}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.receiver, err = newSide(); err != nil {
		return s, err
	}
	if s.hosts, err = newSide(); err != nil {
		return s, err
	}
	if solicited {
		s.window = iwarp.NewSolicitor(solicit.Config{Fixed: o.window})
	}
	s.came, s.have = make([]byte, o.peers*o.size), pattern(o.size)
	if s.sink, err = s.receiver.pd.RegisterMR(s.came, stag.LocalWrite|stag.RemoteWrite, nil); err != nil {
		return s, err
	}
	if s.source, err = s.hosts.pd.RegisterMR(s.have, stag.RemoteRead, nil); err != nil {
		return s, err
	}
	for i := range o.peers + 1 {
		p, err := s.connect(ctx)
		if err != nil {
			return s, err
		}
		if i == o.peers {
			s.victim = p
			break
		}
		p.first, p.to, p.from = i*o.size, s.sink.Advertise(i*o.size, o.size), s.source.Advertise(0, o.size)
		s.peers = append(s.peers, p)
	}
	return s, nil
}

// pattern is octets that differ from one piece to the next.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i/piece)
	}
	return b
}

// connect connects a host. The receiver is the initiator.
func (s *scene) connect(ctx context.Context) (*peer, error) {
	near, far := s.link.Pair()
	p := new(peer)
	accepted := make(chan error, 1)
	go func() {
		cr, err := s.hosts.rnic.Server(ctx, far, nil)
		if err == nil {
			p.far, err = cr.Accept(ctx, &iwarp.QPConfig{PD: s.hosts.pd})
		}
		accepted <- err
	}()
	var err error
	p.near, err = s.receiver.rnic.Client(ctx, near, &iwarp.QPConfig{PD: s.receiver.pd, Solicitor: s.window})
	return p, errors.Join(err, <-accepted)
}

// check tells whether all that the hosts had has come.
func (s *scene) check() error {
	for i := range s.opts.peers {
		if !bytes.Equal(s.came[i*s.opts.size:][:s.opts.size], s.have) {
			return fmt.Errorf("the octets of host %d are not those that it has", i)
		}
	}
	return nil
}

func (s *scene) close() (err error) {
	s.link.Close()
	var all sync.WaitGroup
	for _, d := range []*side{s.receiver, s.hosts} {
		if d != nil {
			all.Go(func() { _ = d.rnic.Close() }) // the link is gone, and with it the connections
		}
	}
	all.Wait()
	if s.window != nil {
		err = s.window.Close()
	}
	return err
}
