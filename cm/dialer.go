package cm

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/servername"
)

// patience is the longest time that one of several addresses of a host may take to connect.
const patience = 5 * time.Second

var errPatience = errors.New("cm: the address has not answered, and the host has others")

// A dialing holds the state that the dialers of one run share.
type dialing struct {
	rnic   *iwarp.RNIC
	limits *stageLimits
	names  *resolver                      // nil: Dial looks names up
	good   atomic.Pointer[iwarp.QPConfig] // the last one that passed check
}

// A dialer makes one attempt at a time.
type dialer struct {
	*dialing
	trace *iwarp.SetupTrace // QPs keep it, so end empties it
	qc    iwarp.QPConfig
	user  *iwarp.SetupTrace // of the target
	last  *lookup           // of the previous attempt
	res   *Result
	limit timeLimit // of the target
	began time.Time // when the stage began

	computes *time.Timer // releases the slot of StageSecure; nil: leave does

	told   *dialTime               // of an attempt whose name Dial looks up; else nil
	giveUp context.CancelCauseFunc // of an address that is not the last one; else nil
	wait   time.Duration           // how long to wait for that address
	timer  *time.Timer
}

func (s *dialing) newDialer() *dialer {
	d := &dialer{dialing: s}
	d.trace = &iwarp.SetupTrace{Enter: d.enter, Leave: d.leave}
	return d
}

// end removes the QPs' references to the dialer.
func (d *dialer) end() { *d.trace = iwarp.SetupTrace{} }

// attempt tries once to set up a target. It stores everything but the error in res.
func (d *dialer) attempt(ctx context.Context, t *Target, qc *iwarp.QPConfig, res *Result) error {
	d.res = res
	defer func() { d.res, d.user, d.qc = nil, nil, iwarp.QPConfig{} }()
	res.Attempts++
	res.Stage, res.Times = StageResolve, [8]time.Duration{}
	if d.rnic == nil {
		return errNoRNIC
	}
	if d.names == nil {
		d.told = &dialTime{Context: ctx}
		defer func() { d.told = nil }()
		return d.dial(d.told, t, qc, t.Addr)
	}
	d.began = time.Now()
	e, lookup, err := parseTarget(ctx, t, d.names.net)
	if err == nil && lookup {
		d.last, err = d.names.resolve(ctx, &d.limit, e.name, d.last, func() error { return d.check(ctx, t, qc) })
	}
	res.Times[StageResolve] = time.Since(d.began)
	switch {
	case err != nil:
		return err
	case !lookup:
		return d.dial(ctx, t, qc, t.Addr)
	}
	return d.dialEach(ctx, t, qc, &e)
}

// dialEach tries the addresses of a host, in order.
func (d *dialer) dialEach(ctx context.Context, t *Target, qc *iwarp.QPConfig, e *endpoint) error {
	addrs := d.last.addrs
	for i, a := range addrs {
		left := len(addrs) - i
		if left == 1 {
			return d.dial(ctx, t, qc, e.at(a))
		}
		d.wait = patience
		if !d.limit.until.IsZero() {
			d.wait = min(d.wait, time.Until(d.limit.until)/time.Duration(left))
		}
		one, giveUp := context.WithCancelCause(ctx)
		d.giveUp = giveUp
		err := d.dial(one, t, qc, e.at(a))
		d.giveUp = nil
		late := errors.Is(context.Cause(one), errPatience) // perhaps in a later stage, after it had connected
		giveUp(nil)
		if err == nil || d.res.Stage != StageDial && !late || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// check checks the configuration of a target before its name is looked up.
func (d *dialer) check(ctx context.Context, t *Target, qc *iwarp.QPConfig) error {
	if qc != nil && d.good.Load() == qc {
		return nil
	}
	err := checkConfig(ctx, d.rnic, t.Network, qc)
	if err != nil {
		d.res.Stage = StageQP
		return err
	}
	d.good.Store(qc)
	return nil
}

// dial sets up a QP with one address.
func (d *dialer) dial(ctx context.Context, t *Target, qc *iwarp.QPConfig, addr string) error {
	if qc != nil {
		d.qc = *qc
	}
	d.user, d.qc.SetupTrace = d.qc.SetupTrace, d.trace
	d.qc.TLS = servername.For(d.qc.TLS, t.Addr) // addr contains an address instead of the name
	qp, err := d.rnic.Dial(ctx, t.Network, addr, &d.qc)
	if err != nil && errors.Is(context.Cause(ctx), errPatience) {
		err = fmt.Errorf("%w: %w", errPatience, err)
	}
	d.res.QP = qp
	return err
}

// enter is SetupTrace.Enter.
func (d *dialer) enter(ctx context.Context, at iwarp.SetupStage) error {
	s := stageOf(at)
	d.res.Stage = s
	slots := d.limits.slots[s]
	if err := slots.take(ctx, &d.limit); err != nil {
		return err
	}
	if s == StageDial && d.told != nil && !d.limit.until.IsZero() {
		until := d.limit.until
		d.told.until.Store(&until)
	}
	if d.user != nil && d.user.Enter != nil {
		if err := d.user.Enter(ctx, at); err != nil {
			slots.give()
			return err
		}
	}
	d.began = time.Now()
	if s == StageSecure && d.limits.computing > 0 {
		d.computes = time.AfterFunc(d.limits.computing, slots.give)
	}
	if s == StageDial && d.giveUp != nil {
		giveUp := d.giveUp
		d.timer = time.AfterFunc(d.wait, func() { giveUp(errPatience) })
	}
	return nil
}

// leave is SetupTrace.Leave.
func (d *dialer) leave(at iwarp.SetupStage, err error) {
	s := stageOf(at)
	d.res.Times[s] += time.Since(d.began)
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.told != nil {
		d.told.until.Store(nil) // from now on the limit may be paused
	}
	if d.user != nil && d.user.Leave != nil {
		d.user.Leave(at, err)
	}
	if d.computes == nil || d.computes.Stop() {
		d.limits.slots[s].give()
	}
	d.computes = nil
}
