package cm

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"
)

// Warm sets up a QP with each target's peer, unless there is one, so that a later Get does not
// wait. It yields the results as [DialMany] does. The QPs stay in the pool: Result.QP is nil.
// Result.Attempts is set only after a failure, and Result.Times never. Warm ignores Target.QP, and a
// Target.Timeout of 0 means 10 s.
func (p *Pool) Warm(ctx context.Context, targets iter.Seq[Target]) iter.Seq2[Target, Result] {
	return func(yield func(Target, Result) bool) {
		f := &flow[Target, Result]{
			items: targets, window: newWindow(defaultInFlight), group: hostOf, perGroup: defaultPerHost,
			settle: func(_ context.Context, t *task[Target, Result]) { t.out.Elapsed = time.Since(t.pulled) },
			drop:   func(context.Context, *task[Target, Result]) {},
			worker: func() (func(context.Context, *task[Target, Result]), func()) { return p.warm, func() {} },
		}
		f.run(ctx, yield)
	}
}

// warm sets up a QP for one target.
func (p *Pool) warm(ctx context.Context, t *task[Target, Result]) {
	if t.in.Timeout >= 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cmp.Or(t.in.Timeout, setupTimeout))
		defer cancel()
	}
	l, err := p.Get(ctx, t.in.Network, t.in.Addr)
	if err == nil {
		t.out.Stage = StageReady
		l.Release(false)
		return
	}
	if last, ok := errors.AsType[*SetupError](err); ok {
		t.out.Stage, t.out.Attempts = last.Stage, last.Attempt
	}
	t.out.Err = &SetupError{Target: t.in, Stage: t.out.Stage, Attempt: t.out.Attempts, Err: err}
}
