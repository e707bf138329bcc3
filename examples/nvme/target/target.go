package target

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/target/internal/model"
)

// A Target holds all subsystems of a process. All methods may be called from any goroutine.
type Target struct {
	cfg     *Config
	model   *model.Target
	rnic    *iwarp.RNIC
	pd      *iwarp.PD
	ownRNIC bool
	ownPD   bool
	start   time.Time
	stopped atomic.Int64 // how long, in nanoseconds, this process has not run

	budget  budget
	memory  memory
	actions actionLists
	shared  *sharedReceives // nil without an SRQ
	stats   counters
	lines   logLimit

	life  atomic.Uint32 // a life; it changes under mu
	tasks atomic.Int64  // commands that have begun, and not ended
	idle  chan struct{} // holds a token when tasks may have become 0 while draining

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	kick    chan struct{} // holds a token when something may be due earlier
	queues  sync.WaitGroup
	release sync.Once
	other   sync.WaitGroup // goroutines besides those of queues and workers

	changing sync.Mutex // held while a subsystem is added, or a namespace added, replaced or removed: the model changes, and then what is below

	mu       sync.Mutex
	live     map[*model.Queue]*queue
	spaces   map[spaceID]*namespace
	flushers map[string]*workers // of what flushes several namespaces, by the NQN of the subsystem
	pools    []*workers          // all there are
}

// New returns a target that has only the discovery subsystem. End it with Close or Shutdown.
func New(cfg *Config) (*Target, error) {
	c, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	m, err := model.New(c.model())
	if err != nil {
		return nil, err
	}
	t := &Target{
		cfg: c, model: m, rnic: c.RNIC, pd: c.PD, start: time.Now(),
		idle: make(chan struct{}, 1), kick: make(chan struct{}, 1),
		live: make(map[*model.Queue]*queue), spaces: make(map[spaceID]*namespace), flushers: make(map[string]*workers),
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.lines.log = c.Logger
	t.budget.init(t)
	t.memory.limit(c.Limits.Idle)
	if err := t.verbs(); err != nil {
		return nil, errors.Join(err, t.releaseVerbs())
	}
	t.other.Go(t.clock)
	return t, nil
}

// verbs makes the RNIC and PD that the configuration does not provide.
func (t *Target) verbs() (err error) {
	if t.rnic == nil {
		if t.rnic, err = iwarp.Open(&iwarp.Config{Logger: slog.New(limitedHandler{t.cfg.Logger.Handler(), &t.lines})}); err != nil {
			return err
		}
		t.ownRNIC = true
		t.other.Go(func() {
			for e := range t.rnic.Events() {
				t.Event(e)
			}
		})
	}
	if t.pd == nil {
		if t.pd, err = t.rnic.AllocPD(); err != nil {
			return err
		}
		t.ownPD = true
	}
	if t.cfg.SRQ > 0 {
		t.shared, err = newSharedReceives(t)
	}
	return err
}

// releaseVerbs releases what verbs has made.
func (t *Target) releaseVerbs() error {
	var errs []error
	if t.shared != nil {
		errs = append(errs, t.shared.close())
	}
	if t.ownPD {
		errs = append(errs, t.pd.Close())
	}
	if t.ownRNIC {
		errs = append(errs, t.rnic.Close())
	}
	return errors.Join(errs...)
}

// now returns the time of the model: the time in which this process has run, and so could receive from hosts.
func (t *Target) now() time.Duration { return time.Since(t.start) - time.Duration(t.stopped.Load()) }

// Listen listens at an address, with the parts of the Config that concern a listener. Pass the listener to Serve, and close
// it afterwards. The NVMe port is 4420.
func (t *Target) Listen(ctx context.Context, network, addr string) (*iwarp.Listener, error) {
	return t.rnic.Listen(ctx, network, addr, t.listenConfig())
}

func (t *Target) listenConfig() *iwarp.ListenConfig {
	return &iwarp.ListenConfig{SetupTimeout: t.cfg.SetupTimeout, TLS: t.cfg.TLS, Auth: t.cfg.Auth}
}

// ServeConn serves a TCP connection that the program has accepted, until its end: for listeners with special options. The
// target owns the connection. ServeConn returns an error if the set-up ends before a request.
func (t *Target) ServeConn(ctx context.Context, c net.Conn) error {
	cr, err := t.rnic.Server(ctx, c, t.listenConfig())
	if err == nil {
		t.Handle(cr)
	}
	return err
}

// Serve accepts the connections of a listener of the target's RNIC, until ctx, the listener or the target ends; the error
// says which. A separate goroutine answers each request; ListenConfig.MaxHalfOpen bounds their number. Connections continue
// when Serve returns.
func (t *Target) Serve(ctx context.Context, l *iwarp.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	err := l.Serve(ctx, func(cr *iwarp.ConnRequest) { t.Handle(cr) })
	if t.ctx.Err() != nil {
		return errClosed
	}
	return err
}

var errClosed = fmt.Errorf("nvme: target closed: %w", net.ErrClosed)

// Event handles an event of the RNIC. It closes a queue that makes no progress. The program must call it for each
// event of an RNIC that it has passed to the target; events of other queue pairs are ignored.
func (t *Target) Event(e iwarp.Event) {
	if e.Kind != iwarp.EventNoProgress || e.QP == nil {
		return
	}
	if q, ok := e.QP.UserData().(*queue); ok && q.t == t {
		t.stats.stalled.Add(1)
		t.lines.warn("queue made no progress", "peer", q.remote, "qid", q.m.QID())
		q.abort()
	}
}

// clock makes the model do what is due.
func (t *Target) clock() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for t.ctx.Err() == nil {
		acts := t.actions.get()
		var next time.Duration
		next, acts.list = t.model.Tick(t.now(), acts.list)
		t.perform(nil, acts)
		pause := t.pause(next)
		due := t.now() + pause
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-t.kick:
		case <-t.ctx.Done():
		}
		if late := t.now() - due; late > mostLate {
			t.stopped.Add(int64(late))
		}
	}
}

// mostLate is how late the clock may be in a running process.
const mostLate = time.Second

// tick is how often the model is called while there are connections. Any command may make something due earlier: a host
// can lower its keep alive timeout.
const tick = 250 * time.Millisecond

// pause returns how long nothing is due.
func (t *Target) pause(next time.Duration) time.Duration {
	if t.connections() == 0 {
		return time.Hour
	}
	return max(min(next-t.now(), tick), time.Millisecond)
}

func (t *Target) connections() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.live)
}

// wake makes the clock check again.
func (t *Target) wake() {
	select {
	case t.kick <- struct{}{}:
	default:
	}
}

// queueOf returns the queue of a queue of the model, nil if it has ended.
func (t *Target) queueOf(m *model.Queue) *queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live[m]
}
