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
	// setupTimeout bounds a set-up that has no other limit.
	setupTimeout = 10 * time.Second
)

var errNoRNIC = errors.New("cm: the RNIC is not set")

// Options are the options of [DialMany]. A zero value means the default.
type Options struct {
	RNIC *iwarp.RNIC
	QP   *iwarp.QPConfig // for targets that have none
	// InFlight limits the targets that are pulled and not yielded yet: 256, at most 65,536. PerHost limits the
	// concurrent set-ups with one host, including those that wait for another attempt: 64; negative: no limit.
	// The host is the part of the address in front of the port.
	InFlight, PerHost int
	// Stage limits the set-ups in each stage: 64 in StageResolve, 256 in StageDial, 2 x GOMAXPROCS in StageSecure, and
	// no limit in the others. Negative: no limit. By default, a TLS handshake counts only for its first millisecond:
	// after that it waits for the peer. A set-up that waits for room after StageDial has a connection, which its peer
	// may give up meanwhile (ListenConfig.ProgressTimeout).
	Stage [8]int
	// Ordered yields the results in the order of the targets.
	Ordered bool
	// Timeout applies to targets that have none: 10 s; negative: only the context limits the
	// set-up.
	Timeout time.Duration
	// Retry returns whether to try again to set up a target, and after which delay; attempt is the
	// number of attempts so far. nil: never. See [DefaultRetry]. An attempt that failed for want of
	// descriptors, local ports or memory for sockets counts only if no other set-up was in progress
	// and no result was ready to be yielded.
	Retry func(t Target, err error, attempt int) (time.Duration, bool)
	// Resolver looks up names; nil: net.DefaultResolver.
	Resolver *net.Resolver
}

// withDefaults replaces fields that are not set by their defaults.
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

// DialMany sets up a connection to each target, many at a time, and yields one result for each
// target, in the order in which the set-ups end. A failure of one does not affect the others.
//
// A target is pulled when the window (Options.InFlight) has room, so the sequence may be infinite.
// A separate goroutine pulls the sequence, concurrently with the loop body. A sequence that blocks
// delays no result, but DialMany waits for it at the end: let the sequence watch a context that is
// cancelled before the loop is left. There is one goroutine for each set-up in progress, and none
// for targets that wait. The loop body runs in the caller's goroutine. It owns the QPs that it is
// given, and may close them there.
//
// A set-up passes through the stages one by one, and may wait for room before each of them. DialMany
// looks up host names for TCP itself, once per loop, and tries their addresses one after the other;
// for other networks [iwarp.RNIC.Dial] does that. A host has at most Options.PerHost set-ups at a
// time: targets that wait for a host that is slow, or does not answer, occupy no goroutine and no
// stage. They do count in the window, because they have been pulled. So other hosts make progress
// as long as no host has InFlight or more of the pulled targets, and at the latest when the set-ups
// in progress have ended, by Timeout: it is best to spread the targets of one host over the
// sequence.
//
// When descriptors, local ports or memory for sockets run out ([transport.ErrExhausted]), the window
// halves. It grows back by one with each success.
//
// If ctx ends, no more targets are pulled, set-ups in progress end, QPs that were not yielded yet are
// aborted, and each pulled target is yielded with the error. If the loop is left, or panics, the same
// happens, but nothing is yielded. A panic of the sequence ends the loop and continues in the
// caller's goroutine. In every case no goroutine is left when the loop ends.
//
// A wrong configuration or address is that target's error, and nothing is sent for it, not even a
// query for its name.
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

// settleDial aborts an established QP before it is yielded if the context has ended.
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

// A setter sets up one target at a time, in one or more attempts.
type setter struct {
	*dialer
	options *Options
	window  *window
}

func (w *setter) close() {
	w.limit.close()
	w.end()
}

// setUp sets up a target, and stores the result.
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

// attempts makes one attempt after another. The first has entered the window already.
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

// outcomeOf returns the outcome for the window.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return succeeded
	case errors.Is(err, transport.ErrExhausted):
		return exhausted
	}
	return failed
}
