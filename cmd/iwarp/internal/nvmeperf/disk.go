package nvmeperf

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/target"
	"github.com/goiwarp/iwarp/solicit"
)

// diskNQN is the subsystem of a target.
const diskNQN = "nqn.2026-11.org.example:disk"

// A disk is a target with one namespace.
type disk struct {
	target  *target.Target
	backend backend.Backend
	l       *listener
	window  *iwarp.Solicitor // nil: none
	sampled sampler
	running sync.WaitGroup
	stop    context.CancelFunc
}

func newDisk(ctx context.Context, what *service) (*disk, error) {
	b, err := backend.Open(what.Disk)
	if err != nil {
		return nil, err
	}
	d, err := newDiskOn(ctx, b, what)
	if err != nil {
		return nil, err
	}
	if d.l, err = listen(what.CC, func(c net.Conn) { _ = d.target.ServeConn(ctx, c) }); err != nil { // the host sees why a connection has ended
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// newDiskOn makes a disk on a back end, which the disk closes. The disk does not listen yet.
func newDiskOn(ctx context.Context, b backend.Backend, what *service) (d *disk, err error) {
	d = &disk{backend: b}
	ctx, d.stop = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	if what.Window > 0 {
		d.window = iwarp.NewSolicitor(solicit.Config{Fixed: what.Window, Dispatch: [2]time.Duration{dispatch, dispatch}})
		d.running.Go(func() { d.sampled.run(ctx, d.window) })
	}
	if d.target, err = target.New(&target.Config{NoCRC: !what.CRC, Solicitor: d.window, ORD: 32}); err != nil {
		return d, err
	}
	if err := d.target.AddSubsystem(target.Subsystem{NQN: diskNQN}); err != nil {
		return d, err
	}
	if err := d.target.AddNamespace(diskNQN, target.Namespace{NSID: 1, Backend: d.backend}); err != nil {
		return d, err
	}
	return d, nil
}

// dispatch is how long a write waits for the window: see target.Config.Solicitor.
const dispatch = 5 * time.Second

func (d *disk) addr() string { return d.l.addr() }

func (d *disk) close() (err error) {
	d.stop()
	if d.target != nil {
		err = d.target.Close()
	}
	if d.l != nil {
		err = errors.Join(err, d.l.close())
		d.l.wait()
	}
	d.running.Wait()
	if d.window != nil {
		err = errors.Join(err, d.window.Close())
	}
	return errors.Join(err, d.backend.Close())
}

// numbers are the numbers that a service reports.
type numbers struct {
	Samples int    `json:"samples"` // of the window
	Most    int64  `json:"most"`    // octets requested and not received yet, the most in all samples
	Granted int64  `json:"granted"` // the most ever, as the Solicitor counts
	Busy    uint64 `json:"busy"`    // commands that waited for too long
	Stalled uint64 `json:"stalled"`
	Queues  int    `json:"queues"`
	Attacks int    `json:"attacks"` // of a hostile host
}

// A sampler samples the window of a Solicitor.
type sampler struct {
	mu      sync.Mutex
	samples int
	most    int64
}

// sampling is the interval at which the window is sampled.
const sampling = 250 * time.Microsecond

func (s *sampler) run(ctx context.Context, window *iwarp.Solicitor) {
	tick := time.NewTicker(sampling)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := window.Stats().Granted
		s.mu.Lock()
		s.samples++
		s.most = max(s.most, now)
		s.mu.Unlock()
	}
}

func (s *sampler) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples, s.most = 0, 0
}

func (d *disk) numbers() numbers {
	t := d.target.Stats()
	n := numbers{Busy: t.Busy, Stalled: t.Stalled, Queues: t.Queues}
	if d.window != nil {
		n.Granted = d.window.Stats().MaxGranted
	}
	d.sampled.mu.Lock()
	defer d.sampled.mu.Unlock()
	n.Samples, n.Most = d.sampled.samples, d.sampled.most
	return n
}
