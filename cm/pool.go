package cm

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
)

const (
	defaultMax = 1024
	// DefaultIdle is a PoolConfig.Idle that suits most programs.
	DefaultIdle = 5 * time.Minute
)

// A PoolConfig configures a [Pool]. A zero value means the default.
type PoolConfig struct {
	RNIC *iwarp.RNIC
	// QP is the configuration of each QP. Its Setup runs for each of them. Drain and Close cancel
	// the context of a running Setup, and wait for it.
	QP *iwarp.QPConfig
	// PerPeer is the greatest number of QPs with one peer: 1, a QP that all its users share. If
	// PerPeer is greater, each QP has one user at a time.
	PerPeer int
	// Max is the greatest number of QPs in all, including QPs that are being set up or closed:
	// 1,024. If other peers need QPs, the least recently used idle QP is closed first. If none has
	// become idle for 100 ms, the pool stops leasing some QP and closes it when it is released, so
	// that each peer gets its turn.
	Max int
	// Idle is how long a QP stays that is not leased: see [DefaultIdle]. 0: for ever.
	Idle time.Duration
	// Backoff returns how long the pool waits before the next set-up with a peer after the
	// attempt-th failure in a row, counted from 1. nil: a random part, half or more, of 10 ms x 2^(attempt-1),
	// but of 30 s at most. It is called with the pool locked, and must neither call the pool nor panic.
	Backoff func(attempt int) time.Duration
}

// A Pool keeps QPs to many peers. It sets up QPs when Get requests them, in goroutines of its own,
// with one set-up for all callers that request the same QP, and closes QPs that are not used.
//
// A QP that has failed is not leased again; the next one with this peer is set up when a Get needs
// it and PoolConfig.Backoff allows. The same applies to a peer that does not answer.
//
// A QP stays as long as it works, even if the keys of its Authenticator are rotated, because only the
// set-up uses them. If a peer is not to be trusted any more, remove its key and call
// [Pool.Drain].
//
// All methods may be called from any goroutine. End a pool with [Pool.Close].
type Pool struct {
	cfg     PoolConfig
	dialing *dialing
	ctx     context.Context // of set-ups
	cancel  context.CancelFunc
	all     sync.WaitGroup // goroutines that set up or close
	ended   chan struct{}  // closed when Close has ended everything

	mu      sync.Mutex
	closed  bool
	peers   map[peerName]*poolPeer
	needed  int       // length of peers when failed peers were last forgotten
	total   int       // QPs in any state but qpGone
	closing int       // QPs in qpClosing
	retired int       // QPs in qpRetired
	idle    list.List // of *pooled, least recently used first
	starved list.List // of *poolPeer that have no QP and wait until total is below Max, in the order of poolPeer.since
	wanting list.List // likewise, of *poolPeer that have a QP and need one more; served after starved
	yielded time.Time // when a QP was last retired for the starved
	sweeper *time.Timer
}

var (
	errPoolClosed = fmt.Errorf("cm: the pool is closed: %w", net.ErrClosed)
	errBroken     = errors.New("cm: the QP was released as broken")
	errSetupEnded = errors.New("cm: the goroutine of the set-up was ended by the program")
)

// NewPool returns a pool. It sets up nothing before the first Get or Warm.
func NewPool(cfg *PoolConfig) (*Pool, error) {
	if cfg == nil || cfg.RNIC == nil {
		return nil, errNoRNIC
	}
	c := *cfg
	if c.PerPeer < 0 || c.Max < 0 || c.Idle < 0 {
		return nil, fmt.Errorf("cm: PoolConfig.PerPeer is %d, Max %d and Idle %v, and none may be negative", c.PerPeer, c.Max, c.Idle)
	}
	c.PerPeer = cmp.Or(c.PerPeer, 1)
	c.Max = cmp.Or(c.Max, defaultMax)
	if c.Backoff == nil {
		c.Backoff = backoff
	}
	ctx, cancel := context.WithCancel(context.Background())
	err := checkConfig(ctx, c.RNIC, "", c.QP)
	if err != nil && checkConfig(ctx, c.RNIC, "sctp+udp", c.QP) != nil { // to be valid for one network is enough
		cancel()
		return nil, fmt.Errorf("cm: PoolConfig.QP: %w", err)
	}
	return &Pool{
		cfg: c, dialing: &dialing{rnic: c.RNIC, limits: newStageLimits([8]int{})},
		ctx: ctx, cancel: cancel, ended: make(chan struct{}), peers: make(map[peerName]*poolPeer),
	}, nil
}

// A waiter is a Get that waits.
type waiter struct {
	answer chan grant
	since  time.Time
}

// A grant is the answer to a waiter.
type grant struct {
	lease *Lease
	err   error
}

// Get leases a QP to a peer: an existing QP, or one that is set up now. The caller holds it until it
// calls Lease.Release. If PoolConfig.PerPeer and Max allow no more QPs, Get waits for one.
//
// Set-ups that fail are repeated, by PoolConfig.Backoff, until ctx ends; then the error matches the
// error of ctx and that of the last set-up. An address that cannot be valid is an error at once, and
// so is a closed RNIC, or a closed object that PoolConfig.QP refers to. When ctx ends, a set-up
// continues for the next Get.
func (p *Pool) Get(ctx context.Context, network, addr string) (*Lease, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errPoolClosed
	}
	r := p.peer(peerName{network, addr})
	w := waiter{make(chan grant, 1), time.Now()}
	if len(r.waiting) == 0 {
		if q := p.usable(r, &w); q != nil {
			defer p.mu.Unlock()
			return p.lease(q), nil
		}
	}
	r.waiting = append(r.waiting, w)
	if ctx.Err() == nil {
		p.serve(r)
	}
	p.mu.Unlock()
	select {
	case g := <-w.answer:
		return g.lease, g.err
	case <-ctx.Done():
		return p.giveUp(ctx, r, w)
	}
}

// giveUp ends a Get that waits, unless it has been answered meanwhile.
func (p *Pool) giveUp(ctx context.Context, r *poolPeer, w waiter) (*Lease, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(r.waiting, w)
	if i < 0 {
		g := <-w.answer
		return g.lease, g.err
	}
	r.waiting = slices.Delete(r.waiting, i, i+1)
	cause := r.err
	p.satisfied(r)
	p.forget(r)
	if cause == nil {
		return nil, fmt.Errorf("cm: get %s %s: %w", r.network, r.addr, causeOf(ctx))
	}
	return nil, fmt.Errorf("cm: get %s %s: %w; the last cause: %w", r.network, r.addr, causeOf(ctx), cause)
}

// Drain ends the current QPs with a peer, on any network; the empty address stands for all peers. The
// pool does not lease them any more, and closes them when they are released. QPs that have not ended
// when ctx ends, or iwarp.Config.CloseTimeout after their release, are aborted. Drain returns when all
// have ended; the error reports how many were aborted. A Get sets up new ones, as soon as
// PoolConfig.PerPeer allows.
func (p *Pool) Drain(ctx context.Context, addr string) error {
	p.mu.Lock()
	var all []*pooled
	for _, r := range p.peers {
		if addr == "" || r.addr == addr {
			for _, q := range r.qps {
				p.retire(q)
				all = append(all, q)
			}
		}
	}
	p.mu.Unlock()
	return p.waitGone(ctx, all)
}

// Close ends the pool: Gets and set-ups in progress fail, idle QPs are closed at once and the others
// when they are released. QPs that have not ended within five seconds are aborted. When Close returns,
// everything has ended; the error reports how many QPs were aborted. See [Pool.Drain].
func (p *Pool) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		<-p.ended
		return nil
	}
	p.closed = true
	p.cancel()
	if p.sweeper != nil {
		p.sweeper.Stop()
	}
	for _, r := range p.peers {
		if r.timer != nil {
			r.timer.Stop()
		}
		p.refuse(r, errPoolClosed)
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeLeases)
	defer cancel()
	err := p.Drain(ctx, "")
	p.all.Wait()
	close(p.ended)
	return err
}

// closeLeases is how long Close waits for leases.
const closeLeases = 5 * time.Second

// waitGone waits until retired QPs have ended, and aborts them if ctx ends first.
func (p *Pool) waitGone(ctx context.Context, all []*pooled) error {
	for _, q := range all {
		select {
		case <-q.gone:
			continue
		case <-ctx.Done():
		}
		break
	}
	var leases int
	var closing []*iwarp.QP
	p.mu.Lock()
	for _, q := range all {
		switch q.state {
		case qpRetired, qpBroken:
			leases++
			p.end(q, true)
		case qpClosing:
			q.cut = cmp.Or(q.cut, causeOf(ctx))
			closing = append(closing, q.qp)
		default: // a set-up that was cancelled, or gone
		}
	}
	p.mu.Unlock()
	for _, qp := range closing {
		_ = qp.Abort()
	}
	for _, q := range all {
		<-q.gone
	}
	var errs []error
	if leases > 0 {
		errs = append(errs, fmt.Errorf("cm: %d QPs were aborted that were not released: %w", leases, causeOf(ctx)))
	}
	return errors.Join(append(errs, cutOff(all))...)
}

// cutOff returns an error that reports how many QPs were aborted instead of an orderly end.
func cutOff(all []*pooled) error {
	n, first := 0, error(nil)
	for _, q := range all {
		if q.cut != nil && q.qp.Err() != nil {
			n, first = n+1, cmp.Or(first, q.cut)
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("cm: %d QPs were aborted that had not ended: %w", n, first)
}
