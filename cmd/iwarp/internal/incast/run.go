package incast

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/solicit"
	"github.com/goiwarp/iwarp/stag"
)

// A way is how the data get to the receiver.
type way struct {
	name      string
	short     string // in a plot
	solicited bool
	transfer  func(ctx context.Context, s *scene, p *peer) error
}

// The ways: the hosts write what they have at once; the receiver reads it under a Solicitor.
var ways = []way{
	{"unsolicited Writes", "unsolicited", false, write},
	{"Reads under a Solicitor", "solicited", true, read},
}

// write makes the host write all its data, and waits until they have arrived.
func write(ctx context.Context, s *scene, p *peer) error {
	for at := 0; at < s.opts.size; at += piece {
		to := p.to
		to.TO += uint64(at)
		to.Len = piece
		if err := p.far.RDMAWrite(ctx, to, s.source.Slice(at, piece)); err != nil {
			return err
		}
	}
	return p.far.RDMARead(ctx, iwarp.SGE{}, iwarp.RemoteBuffer{STag: p.to.STag, TO: p.to.TO}) // comes behind the Writes
}

// read makes the receiver read all data of the host.
func read(ctx context.Context, s *scene, p *peer) error {
	for at := 0; at < s.opts.size; at += piece {
		from := p.from
		from.TO += uint64(at)
		from.Len = piece
		wr := iwarp.SendWR{Op: iwarp.OpRDMARead, Class: solicit.Bulk, Local: []iwarp.SGE{s.sink.Slice(p.first+at, piece)}, Remote: from}
		if err := do(ctx, p.near, wr); err != nil {
			return err
		}
	}
	return nil
}

// do waits for the completion of a work request. No other is on the QP.
func do(ctx context.Context, qp *iwarp.QP, wr iwarp.SendWR) error {
	if err := qp.PostSend(wr); err != nil {
		return err
	}
	var wcs [1]iwarp.WC
	if _, err := qp.SendCQ().Wait(ctx, wcs[:]); err != nil {
		return err
	}
	return wcs[0].Err()
}

// A sample is one run of a way.
type sample struct {
	Way      string        `json:"way"`
	Elapsed  time.Duration `json:"elapsed"`
	P50      time.Duration `json:"victim_p50"`
	P99      time.Duration `json:"victim_p99"`
	Reads    int           `json:"victim_reads"`
	Backlog  int           `json:"backlog"` // octets on the link, at most
	Granted  int64         `json:"granted"` // by the Solicitor, at most
	Backlogs []backlog     `json:"backlogs"`
}

// A backlog is the most octets that were on the link in a millisecond.
type backlog struct {
	At     time.Duration `json:"at"`
	Octets int           `json:"octets"`
}

// run does a way once.
func (o *options) run(ctx context.Context, w way) (*sample, error) {
	s, err := o.open(ctx, w.solicited)
	if err != nil {
		return nil, err
	}
	defer s.close() //nolint:errcheck // what counts has been measured
	r := &sample{Way: w.name}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan struct{})
	var watching sync.WaitGroup
	var verr error
	var times []time.Duration
	watching.Go(func() { times, verr = s.suffer(ctx, over) })
	watching.Go(func() { r.Backlogs = s.watch(over) })

	began := time.Now()
	errs := make([]error, len(s.peers))
	var all sync.WaitGroup
	for i, p := range s.peers {
		all.Go(func() {
			if errs[i] = w.transfer(ctx, s, p); errs[i] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	r.Elapsed = time.Since(began)
	close(over)
	watching.Wait()
	for _, err := range append(errs, verr) {
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(times)
	r.Reads, r.P50, r.P99 = len(times), times[len(times)/2], times[len(times)*99/100]
	for _, b := range r.Backlogs {
		r.Backlog = max(r.Backlog, b.Octets)
	}
	if s.window != nil {
		r.Granted = s.window.Stats().MaxGranted
	}
	return r, s.check()
}

// suffer reads a few octets of a host that sends nothing else, one Read after the other, and
// tells how long each took.
func (s *scene) suffer(ctx context.Context, over <-chan struct{}) (times []time.Duration, err error) {
	source, err := s.hosts.pd.RegisterMR(make([]byte, victimSize), stag.RemoteRead, nil)
	if err != nil {
		return nil, err
	}
	sink, err := s.receiver.pd.RegisterMR(make([]byte, victimSize), stag.LocalWrite, nil)
	if err != nil {
		return nil, err
	}
	wr := iwarp.SendWR{
		Op: iwarp.OpRDMARead, Class: solicit.Latency,
		Local: []iwarp.SGE{sink.Slice(0, victimSize)}, Remote: source.Advertise(0, victimSize),
	}
	for {
		began := time.Now()
		if err := do(ctx, s.victim.near, wr); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began))
		select {
		case <-over:
			return times, nil
		default:
		}
	}
}

// watch follows the backlog of the link.
func (s *scene) watch(over <-chan struct{}) (all []backlog) {
	began := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_, most := s.link.Backlog()
			all = append(all, backlog{time.Since(began), most})
		case <-over:
			return all
		}
	}
}
