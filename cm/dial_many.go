package cm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/transport"
)

const (
	defaultInFlight = 256
	defaultPerHost  = 64
	// setupTimeout bounds a set-up for which there is no other limit.
	setupTimeout = 10 * time.Second
)

var errNoRNIC = errors.New("cm: the RNIC is not set")

// Options are those of [DialMany]. Zero values mean defaults.
type Options struct {
	RNIC *iwarp.RNIC
	QP   *iwarp.QPConfig // of targets that have none
	// InFlight is how many targets are pulled and not yielded yet: 256, at most 65,536. PerHost is how many of
	// them are set up at a time with one host, those that wait for another attempt included:
	// 64; negative: as many as there are. The host is what the address has in front of the port.
	InFlight, PerHost int
	// Stage is how many set-ups may be in a stage at a time: 64 lookups of names, 256 in StageDial, 2 x GOMAXPROCS
	// handshakes of TLS, but for those that take longer than a millisecond, so wait for the peer, and any number
	// of the rest. Negative: any number. A set-up that waits for room behind StageDial has a connection, which its peer
	// may give up meanwhile (ListenConfig.ProgressTimeout).
	Stage [8]int
	// Ordered yields the results in the order of the targets.
	Ordered bool
	// Timeout is that of targets that have none: 10 s; negative: there is none but that of the
	// context.
	Timeout time.Duration
	// Retry tells whether, and after which time, to try once more to set up a target; attempt is
	// how many there were. nil: never. See [DefaultRetry]. One for which there was no descriptor,
	// or no memory for the socket, counts only if no other set-up was under way, and no result
	// waited to be yielded that could be.
	Retry func(t Target, err error, attempt int) (time.Duration, bool)
	// Resolver looks names up; nil: net.DefaultResolver.
	Resolver *net.Resolver
}

// withDefaults fills in what is not set.
func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.InFlight <= 0 {
		c.InFlight = defaultInFlight
	}
	c.PerHost = cmp.Or(c.PerHost, defaultPerHost)
	if c.PerHost < 0 {
		c.PerHost = c.InFlight
	}
	c.Timeout = cmp.Or(c.Timeout, setupTimeout)
	c.Resolver = cmp.Or(c.Resolver, net.DefaultResolver)
	return c
}

// DialMany sets up a connection to each target, many at a time, and yields one result for each,
// as they come. A failure of one does not touch the others.
//
// A target is pulled when the window (Options.InFlight) has room, so the sequence may be
// without end. It is pulled by a goroutine of its own, beside the body of the loop; one that
// waits holds no result back, but DialMany waits for it at the end: let it watch a context that
// is cancelled before the loop is left. There is one goroutine for each set-up under way, and
// none for targets that wait. The body of the loop runs in the goroutine of the caller, and
// what it has been given is its own; it may close QPs there.
//
// A set-up goes through the stages one by one, and may wait for room in front of each. Names of
// hosts of TCP are looked up here, once as long as the loop lasts, and their addresses tried one
// after the other; over other networks [iwarp.RNIC.Dial] does that. A host is not given more
// than Options.PerHost set-ups at a time: those of a host that is slow, or does not answer, keep
// no goroutine and no stage from others. They do count in the window, since they are pulled. So
// others go on as long as no host has InFlight targets or more among those that are pulled, and
// at the latest when those that are under way have ended, by Timeout: targets of one host are
// best spread over the sequence.
//
// Where descriptors run out ([transport.ErrExhausted]), local ports, or memory for sockets, the window
// halves, and grows back by one with each success.
//
// If ctx ends, no more targets are pulled, set-ups under way end, QPs that were not yielded yet
// are aborted, and each target that was pulled is yielded with the error. If the loop is left,
// or panics, the same happens, and nothing is yielded. A panic of the sequence ends the loop, and
// goes on in the goroutine of the caller. In every case no goroutine is left when the loop ends.
//
// A configuration, or an address, that is wrong is that target's error, and nothing is sent for
// it, not even to look its name up.
func DialMany(ctx context.Context, targets iter.Seq[Target], opts *Options) iter.Seq2[Target, Result] {
	o := opts.withDefaults()
	return func(yield func(Target, Result) bool) {
		f := &flow[Target, Result]{
			items: targets, window: newWindow(o.InFlight), ordered: o.Ordered,
			settle: settleDial, drop: dropDial,
			group: hostOf, perGroup: o.PerHost,
		}
		s := &dialing{rnic: o.RNIC, limits: newStageLimits(o.Stage)}
		s.names = &resolver{
			net: o.Resolver, slots: s.limits.slots[StageResolve], ctx: ctx, all: &f.all, known: make(map[hostName]*lookup),
		}
		f.worker = func() (func(context.Context, *task[Target, Result]), func()) {
			w := &setter{dialer: s.newDialer(), options: &o, window: f.window}
			return w.setUp, w.close
		}
		f.run(ctx, yield)
	}
}

// settleDial has nothing established yielded when the context has ended.
func settleDial(ctx context.Context, t *task[Target, Result]) {
	t.out.Elapsed = time.Since(t.pulled)
	if t.out.QP == nil || ctx.Err() == nil {
		return
	}
	dropDial(ctx, t)
	t.out.QP = nil
	t.out.Err = &SetupError{Target: t.in, Stage: t.out.Stage, Attempt: t.out.Attempts, Err: causeOf(ctx)}
}

// dropDial ends a QP that is not yielded.
func dropDial(_ context.Context, t *task[Target, Result]) {
	if t.out.QP != nil {
		_ = t.out.QP.Abort()
	}
}

// A setter sets up one target at a time, in as many attempts as it takes.
type setter struct {
	*dialer
	options *Options
	window  *window
}

func (w *setter) close() {
	w.limit.close()
	w.end()
}

// setUp takes a target to its result.
func (w *setter) setUp(ctx context.Context, t *task[Target, Result]) {
	turn, err := w.window.enter(ctx)
	if err == nil {
		d := cmp.Or(t.in.Timeout, w.options.Timeout)
		err = w.limit.end(w.attempts(w.limit.begin(ctx, d), t, turn))
	}
	w.last = nil
	if err != nil {
		t.out.Err = &SetupError{Target: t.in, Stage: t.out.Stage, Attempt: t.out.Attempts, Err: err}
	}
}

// attempts makes one attempt after the other. The first has entered the window.
func (w *setter) attempts(ctx context.Context, t *task[Target, Result], turn turn) error {
	qc := cmp.Or(t.in.QP, w.options.QP)
	for counted := 0; ; {
		err := w.attempt(ctx, &t.in, qc, &t.out)
		how := outcomeOf(err)
		if alone := w.window.leave(how, turn); alone || how != exhausted {
			counted++
		}
		if err == nil || w.options.Retry == nil || ctx.Err() != nil {
			return err
		}
		delay, again := w.options.Retry(t.in, err, max(counted, 1))
		if !again {
			return err
		}
		ended := sleep(ctx, delay)
		if ended == nil {
			turn, ended = w.window.enter(ctx)
		}
		if ended != nil {
			return fmt.Errorf("%w; the wait for another attempt ended: %w", err, ended)
		}
	}
}

// outcomeOf is what the window is told.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return succeeded
	case errors.Is(err, transport.ErrExhausted):
		return exhausted
	}
	return failed
}
