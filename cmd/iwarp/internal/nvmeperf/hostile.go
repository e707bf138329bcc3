package nvmeperf

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
	"github.com/goiwarp/iwarp/examples/nvme/host"
)

const (
	// honestHosts read one block after the other.
	honestHosts = 2
	// mostP99 is how many times the p99 of honest hosts without an attack their p99 under attack may be.
	mostP99 = 2
)

// hostile compares the p99 of hosts that read while another host attacks the target with their p99 without attacks. The hostile host
// has a process of its own.
func (b *bench) hostile() error {
	return b.on(func(s *stand) error {
		a, err := s.open(&service{Disk: memoryDisk})
		if err != nil {
			return err
		}
		var honest []*client
		for range honestHosts {
			c, err := s.connect(a.Addr, host.Options{})
			if err != nil {
				return err
			}
			honest = append(honest, c)
		}
		if err := honest[0].fill(b.ctx); err != nil {
			return err
		}
		enemy, err := s.enemy()
		if err != nil {
			return err
		}
		var alone, attacked, ratios []float64
		var attacks int
		for range b.opts.Pairs {
			quiet, err := readFor(honest, longer*b.opts.Span)
			if err != nil {
				return err
			}
			loud, n, err := b.under(enemy, a.Addr, honest)
			if err != nil {
				return err
			}
			attacks += n
			alone, attacked, ratios = append(alone, quiet), append(attacked, loud), append(ratios, loud/quiet)
		}
		b.Note("%d honest hosts read 4 KiB, one at a time: p99 %.0f us, under %d attacks %.0f us", honestHosts, stats.Median(alone), attacks, stats.Median(attacked))
		b.Marks.Most("p99 of honest hosts while a hostile one attacks, against none", stats.Median(ratios), mostP99, "")
		return nil
	})
}

// enemy starts the process of the hostile host.
func (s *stand) enemy() (*peer.Control, error) {
	child, err := peer.Start(s.b.ctx, s.b.stderr, "perf", "nvme", "--serve")
	if err != nil {
		return nil, err
	}
	s.later(child.Stop)
	c, err := peer.DialControl(child)
	if err == nil {
		s.later(c.Close)
	}
	return c, err
}

// under makes honest hosts read while the enemy attacks, and returns their p99 and the number of attacks.
func (b *bench) under(enemy *peer.Control, addr string, honest []*client) (p99 float64, attacks int, err error) {
	var a reply
	if err := enemy.Do(order{Do: doOpen, Open: &service{Attack: addr}}, &a); err != nil {
		return 0, 0, err
	}
	p99, err = readFor(honest, longer*b.opts.Span)
	var st reply
	err = errors.Join(err, enemy.Do(order{Do: doStats, Service: a.Service}, &st), enemy.Do(order{Do: doClose, Service: a.Service}, &reply{}))
	return p99, st.Stats.Attacks, err
}

// readFor makes hosts read during span, and returns the p99 of all reads in microseconds.
func readFor(hosts []*client, span time.Duration) (float64, error) {
	end := time.Now().Add(span)
	errs, all := make([]error, len(hosts)), make([]*workers, len(hosts))
	var reading sync.WaitGroup
	for i, c := range hosts {
		all[i] = c.workers(readBlock, 4*kib, 1)
		all[i].times = []time.Duration{}
		reading.Go(func() { errs[i] = all[i].while(func() bool { return time.Now().Before(end) }) })
	}
	reading.Wait()
	var times []time.Duration
	for _, w := range all {
		times = append(times, w.times...)
	}
	if err := errors.Join(errs...); err != nil || len(times) == 0 {
		return 1, err
	}
	return float64(stats.Quantile(times, 99)) / float64(time.Microsecond), nil
}

// An enemyService is a hostile host at work.
type enemyService struct {
	e       *enemy
	stop    context.CancelFunc
	working sync.WaitGroup
}

var errNoAttack = errors.New("the hostile host gets no connection: there is no attack")

// newEnemyService returns when the first attack has a connection, so that later measurements are under attack.
func newEnemyService(ctx context.Context, addr string) (*enemyService, error) {
	e, err := newEnemy(addr)
	if err != nil {
		return nil, err
	}
	s := &enemyService{e: e}
	ctx, s.stop = context.WithCancel(ctx)
	s.working.Go(func() { e.attack(ctx) })
	select {
	case <-e.begun:
		return s, nil
	case <-time.After(peer.Timeout):
	case <-ctx.Done():
	}
	return nil, errors.Join(errNoAttack, s.close())
}

func (s *enemyService) addr() string     { return "" }
func (s *enemyService) numbers() numbers { return numbers{Attacks: int(s.e.attacks.Load())} }

func (s *enemyService) close() error {
	s.stop()
	s.working.Wait()
	return s.e.close()
}
