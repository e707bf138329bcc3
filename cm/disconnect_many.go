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

// DisconnectOptions are the options of [DisconnectMany]. A zero value means the default.
type DisconnectOptions struct {
	InFlight int // QPs that are closed at the same time: 256, at most 65,536
	// Timeout is the time for all QPs together to end gracefully: 10 s. The QPs that are left then
	// are aborted; negative: only the context limits the total time. Each QP has at most
	// iwarp.Config.CloseTimeout.
	Timeout time.Duration
}

var (
	errNoQP      = errors.New("cm: disconnect: the QP is nil")
	errNotInTime = fmt.Errorf("not closed in time: %w", os.ErrDeadlineExceeded)
)

// closeTimeout is the default of DisconnectOptions.Timeout.
const closeTimeout = 10 * time.Second

// DisconnectMany ends each QP, many at a time, and yields it with its error when it has ended. It
// closes them gracefully, by [iwarp.QP.Close], as long as DisconnectOptions.Timeout, ctx and the
// iwarp.Config.CloseTimeout of each allow. QPs that have not ended by then are aborted, and so are all
// QPs that follow: every QP is ended, and its resources are free again. The error is nil for a QP that
// ended gracefully, or that had ended before in any way. The error of a QP that was aborted for want
// of time matches os.ErrDeadlineExceeded or the error of ctx. A QP with a memory window bound to it
// cannot be closed gracefully: it is aborted too, and its error says so.
//
// If the loop is left, or panics, QPs that were pulled are aborted, and the others are not touched.
// What [DialMany] documents about the sequence and about goroutines also applies here.
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
			stop := context.AfterFunc(f.ctx, hasten) // if the loop is left
			work := func(_ context.Context, t *task[*iwarp.QP, error]) { t.out = disconnect(grace, t.in) }
			return work, func() { stop(); hasten() }
		}
		f.run(context.WithoutCancel(ctx), yield) // the end of ctx ends the grace, not the work
	}
}

// disconnect ends one QP, gracefully unless grace ends first.
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
