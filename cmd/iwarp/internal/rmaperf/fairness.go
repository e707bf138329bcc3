package rmaperf

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/bottleneck"
	"github.com/goiwarp/iwarp/rma"
	"github.com/goiwarp/iwarp/solicit"
)

const (
	// flows is how many clients share a link, each with an Executor.
	flows = 8
	// flowSlots is the maximum number of operations of a flow, and flowBlock the octets of one call of the
	// Executor.
	flowSlots = 64
	flowBlock = mib
	// rtt is the RTT of the link.
	rtt = 2 * delay
	// settling is the number of RTT after which flows must have fair shares, and ratePhase the number of RTT that a rate lasts.
	settling  = 50
	ratePhase = 500
	// shareWindow is the length of the window in which shares are measured, in RTT.
	shareWindow = 50
	// leastFair is the smallest permitted Jain's index after settling.
	leastFair = 0.95
)

// A period is the result of the flows at one rate of the link.
type period struct {
	Rate  float64 `json:"rate"`  // of the link, octets per second
	After float64 `json:"after"` // how many RTT the flows needed to reach fair shares; negative: they did not reach them
	Jain  float64 `json:"jain"`  // the least of Jain's index in a window, from settling on
	Used  float64 `json:"used"`  // the part of the link that they have used from then on
	// Rates are the rates of each flow, octets per second, one for each plotWindow. The first period is
	// the one before the rate changes.
	Rates [][]float64 `json:"rates"`
}

// fair says after what time the shares were fair.
func (p *period) fair() string {
	if p.After < 0 {
		return fmt.Sprintf("not fair within %d RTT", ratePhase)
	}
	return fmt.Sprintf("fair after %.0f RTT", p.After)
}

// fairness halves and doubles the rate of a link that eight flows share, each with an Executor and operations of 4 KiB,
// in virtual time.
func (b *bench) fairness() error {
	periods, err := b.flowsInVirtualTime()
	if err != nil {
		return err
	}
	b.judgeFlows(periods[1:])
	return b.drawFlows(periods)
}

func (b *bench) judgeFlows(periods []period) {
	worst, least := 0.0, 1.0
	for _, p := range periods {
		b.Note("8 flows, link of %g Mb/s in virtual time: %s, Jain's index %.3f, %.2f of the link", p.Rate*8/1e6, p.fair(), p.Jain, p.Used)
		if p.After < 0 {
			p.After = ratePhase
		}
		worst, least = max(worst, p.After), min(least, p.Jain)
	}
	b.Marks.Most("link halved and doubled under 8 flows: RTT until each is within 20 % of its share", worst, settling, "")
	b.Marks.Least("link halved and doubled under 8 flows: Jain's index after 50 RTT", least, leastFair)
}

// A flow reads its region repeatedly.
type flow struct {
	*end

	region uint64
	octets *atomic.Int64
}

// A counted is a Buffer that counts the octets that are read.
type counted struct {
	*rma.Memory

	octets atomic.Int64
}

// ReadAt reads octets.
func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	c.octets.Add(int64(len(p)))
	return c.Memory.ReadAt(p, off)
}

// measureFlows runs the flows at the rate of the link, at half of it, and at the full rate again, each for phase RTT. A flow's share is
// what the server has read of its region in a window that slides by an RTT. It is called in virtual time.
func measureFlows(o *options, phase int) (periods []period, err error) {
	ctx, stop := context.WithCancel(context.Background())
	what := &service{Kind: kindRMA, CRC: o.CRC, Sealed: true, MaxOp: 4 * kib, Size: smallSize}
	s, err := newScene(ctx, what)
	if err != nil {
		stop()
		return nil, err
	}
	link := bottleneck.New(bottleneck.Options{Rate: o.rate, Latency: delay})
	s.links = append(s.links, link)
	var running sync.WaitGroup
	defer func() {
		stop()
		err = errors.Join(err, s.close())
		running.Wait()
		time.Sleep(time.Second) // timers of connections that have ended
	}()
	var all []*flow
	for i := range flows {
		f, err := s.flow(link, uint64(i+1))
		if err != nil {
			return nil, err
		}
		all = append(all, f)
		running.Go(func() { f.run(ctx) })
	}
	periods = append(periods, period{Rate: float64(o.rate), Rates: follow(all, phase).rates(plotWindow)}) // the flows find their shares
	for _, part := range []float64{0.5, 1} {
		rate := float64(o.rate) * part
		link.SetRate(int64(rate))
		r := follow(all, phase)
		p := period{Rate: rate, After: -1, Rates: r.rates(plotWindow)}
		if at, ok := r.settled(shareWindow * rtt); ok {
			p.After = float64(at) / float64(rtt)
		}
		after := r.from(settling * rtt)
		p.Jain, p.Used = after.leastJain(shareWindow*rtt), after.rate()/rate
		periods = append(periods, p)
	}
	return periods, nil
}

// flow adds a flow with a region of its own.
func (s *scene) flow(link *bottleneck.Link, region uint64) (*flow, error) {
	m := &counted{Memory: rma.NewMemory(make([]byte, flowBlock))}
	if err := s.server.register(region, m); err != nil {
		return nil, err
	}
	cfg, err := clientConfig(true, s.what.MaxOp)
	if err != nil {
		return nil, err
	}
	if cfg.Solicitor, err = rma.NewSolicitor(solicit.Config{Fixed: ample}); err != nil {
		return nil, err
	}
	e, err := s.client(link, cfg, flowSlots)
	return &flow{end: e, region: region, octets: &m.octets}, err
}

// run reads until ctx or the link ends.
func (f *flow) run(ctx context.Context) {
	e, buf := rma.NewExecutor(f.portal), make([]byte, flowBlock)
	h, err := f.open(f.region)
	for err == nil {
		_, err = e.ReadAt(ctx, h, buf, 0)
	}
}

// follow records the octets of the flows for phase RTT.
func follow(all []*flow, phase int) (r record) {
	began := time.Now()
	for i := range phase + 1 {
		time.Sleep(time.Until(began.Add(time.Duration(i) * rtt)))
		m := moment{at: time.Since(began)}
		for _, f := range all {
			m.octets = append(m.octets, f.octets.Load())
		}
		r = append(r, m)
	}
	return r
}
