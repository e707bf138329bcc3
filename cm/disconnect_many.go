package cm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/closed"
)

// DisconnectOptions are those of [DisconnectMany]. Zero values mean defaults.
type DisconnectOptions struct {
	InFlight int // QPs that are being closed at a time: 256, at most 65,536
	// Timeout is how long there is for all QPs to end gracefully: 10 s. After it what is left is
	// aborted; negative: there is no limit for all but that of the context. Each has no longer than
	// iwarp.Config.CloseTimeout.
	Timeout time.Duration
}

var (
	errNoQP      = errors.New("cm: disconnect: the QP is nil")
	errNotInTime = fmt.Errorf("not closed in time: %w", os.ErrDeadlineExceeded)
)

// closeTimeout is how long QPs have to end gracefully, where nothing else is said.
const closeTimeout = 10 * time.Second

// DisconnectMany ends each QP, many at a time, and yields it with its error as it has ended. It
// closes them gracefully, [iwarp.QP.Close], for as long as DisconnectOptions.Timeout, ctx and the
// iwarp.Config.CloseTimeout of each allow. Those that have not ended by then are aborted, and so are all that follow: every QP is
// ended, and what it had is free again. The error is nil for one that has ended gracefully, or
// had ended before in whichever way; one that was aborted for want of time has an error that
// matches os.ErrDeadlineExceeded, or that of ctx. One with a memory window bound to it, which is
// not closed gracefully, is aborted as well, and its error tells.
//
// If the loop is left, or panics, what was pulled is aborted, and what was not is not touched.
// What [DialMany] tells of the sequence, and of goroutines, holds here, too.
func DisconnectMany(ctx context.Context, qps iter.Seq[*iwarp.QP], opts *DisconnectOptions) iter.Seq2[*iwarp.QP, error] {
	var o DisconnectOptions
	if opts != nil {
		o = *opts
	}
	if o.InFlight <= 0 {
		o.InFlight = defaultInFlight
	}
	o.Timeout = cmp.Or(o.Timeout, closeTimeout)
	return func(yield func(*iwarp.QP, error) bool) {
		grace, cancel := ctx, context.CancelFunc(func() {})
		if o.Timeout > 0 {
			grace, cancel = context.WithTimeoutCause(ctx, o.Timeout, errNotInTime)
		}
		defer cancel()
		none := func(context.Context, *task[*iwarp.QP, error]) {}
		f := &flow[*iwarp.QP, error]{items: qps, window: newWindow(o.InFlight), settle: none, drop: none}
		f.worker = func() (func(context.Context, *task[*iwarp.QP, error]), func()) {
			grace, hasten := context.WithCancel(grace)
			stop := context.AfterFunc(f.ctx, hasten) // where the loop is left
			work := func(_ context.Context, t *task[*iwarp.QP, error]) { t.out = disconnect(grace, t.in) }
			return work, func() { stop(); hasten() }
		}
		f.run(context.WithoutCancel(ctx), yield) // the end of ctx ends no work, but its grace
	}
}

// disconnect ends one QP: gracefully unless grace ends before.
func disconnect(grace context.Context, qp *iwarp.QP) error {
	if qp == nil {
		return errNoQP
	}
	if closed.Is(qp.Done()) {
		return nil
	}
	aborted := make(chan struct{})
	inTime := context.AfterFunc(grace, func() {
		defer close(aborted)
		_ = qp.Abort()
	})
	err := qp.Close()
	late := !inTime()
	if late {
		<-aborted
	}
	if !closed.Is(qp.Done()) {
		err = errors.Join(err, qp.Abort())
	}
	if late && qp.Err() != nil {
		return fmt.Errorf("cm: disconnect: aborted: %w", context.Cause(grace))
	}
	return err
}
