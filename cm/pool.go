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
	// DefaultIdle is a PoolConfig.Idle for most.
	DefaultIdle = 5 * time.Minute
)

// A PoolConfig configures a [Pool]. Zero values mean defaults.
type PoolConfig struct {
	RNIC *iwarp.RNIC
	// QP is what each QP is made of. Its Setup runs for each of them. Drain and Close end the
	// context of one that runs, and wait for it.
	QP *iwarp.QPConfig
	// PerPeer is how many QPs there are with one peer at most: 1, which all that ask for it
	// share. With more a QP belongs to one of them at a time.
	PerPeer int
	// Max is how many QPs there are in all, those that are set up or closed at the moment
	// included: 1,024. Where they are needed for other peers, the idle QP that was used least
	// recently goes first. If none has become idle for 100 ms a QP is not leased again: each peer that
	// is asked for has its turn.
	Max int
	// Idle is how long a QP stays that is not leased: see [DefaultIdle]. 0: for ever.
	Idle time.Duration
	// Backoff is how long the pool waits for the next set-up with a peer after the attempt-th
	// failure in a row, counted from 1. nil: 10 ms x 2^(attempt-1) and at most 30 s, of which
	// half or less is taken away at random. It is called with the pool locked, and must neither call the pool nor panic.
	Backoff func(attempt int) time.Duration
}

// A Pool keeps QPs to many peers. It sets them up when they are asked for, in goroutines of its
// own, one set-up for all that ask for the same QP, and closes those that are not used.
//
// A QP that has failed is not handed out again; the next one with this peer is set up when one
// is asked for and PoolConfig.Backoff allows. So is it with a peer that does not answer.
//
// A QP stays for as long as it works. The keys of an Authenticator may be rotated meanwhile: they
// are for the set-up. Where a peer is not to be trusted any more, take its key away and call
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
	needed  int       // of peers, when those that had failed were forgotten last
	total   int       // QPs, in each state but qpGone
	closing int       // of them
	retired int       // likewise, those in qpRetired
	idle    list.List // of *pooled, the least recently used first
	starved list.List // of *poolPeer, which have no QP and wait for one QP less, in the order of poolPeer.since
	wanting list.List // likewise, those which have a QP and need one more; the starved come first
	yielded time.Time // when a QP was last retired for the starved
	sweeper *time.Timer
}

var (
	errPoolClosed = fmt.Errorf("cm: the pool is closed: %w", net.ErrClosed)
	errBroken     = errors.New("cm: the QP was released as broken")
	errSetupEnded = errors.New("cm: the goroutine of the set-up was ended by the program")
)

// NewPool makes a pool. Nothing is set up until it is asked for.
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
	if err != nil && checkConfig(ctx, c.RNIC, "sctp+udp", c.QP) != nil { // what is right for one network is right
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

// A grant is its answer.
type grant struct {
	lease *Lease
	err   error
}

// Get returns a QP to a peer: one that is there, or one that is set up now. The caller has it
// until it is released. Where PoolConfig.PerPeer and Max allow no more QPs, Get waits for one.
//
// Set-ups that fail are repeated, by PoolConfig.Backoff, until ctx ends; then the error is that
// of ctx and that of the last set-up. An address that cannot be right is an error at once, and so
// is an RNIC that is closed, or something that PoolConfig.QP names. A set-up goes on when ctx ends,
// for the next Get.
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

// giveUp ends the waiting of a Get, unless it has been answered meanwhile.
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

// Drain ends the QPs that there are with a peer, whatever the network; the empty address is
// that of all peers. They are not handed out any more, are closed when they are released, and
// aborted if ctx ends before that, or iwarp.Config.CloseTimeout after the release. Drain returns when
// they have ended; the error tells of those that were aborted. A Get makes new ones, as soon as
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

// Close ends the pool: Gets and set-ups under way fail, idle QPs are closed, the others
// when they are released, and aborted if that takes longer than five seconds. When Close
// returns everything has ended; the error tells of those that were aborted. See [Pool.Drain].
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

// waitGone waits until QPs that were retired have ended, and aborts them if ctx ends before.
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
		default: // a set-up that ends, or gone
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

// cutOff tells of those QPs that are gone whose orderly end was cut off.
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
