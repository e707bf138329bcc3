package iwarp

import (
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/errtext"
)

// A ListError identifies the first work request of [QP.Do] that did not succeed.
type ListError struct {
	N   int   // its index; all requests before it have succeeded
	Err error // its error, or that of the context
}

func (e *ListError) Error() string {
	return fmt.Sprintf("iwarp: work request %d of the list: %s", e.N, errtext.Plain(e.Err))
}

func (e *ListError) Unwrap() error { return e.Err }

// Do posts a list of work requests, in order, and waits until all of them are done. wcs[i] is
// the completion of wrs[i]; Unsignaled has no effect. The list may be longer than
// QPConfig.SendDepth: it is then posted as slots become free, and work of other goroutines may
// be posted in between.
//
// The error is a *[ListError]. It identifies the first request that failed, could not be
// posted, or was not done when ctx ended. wcs then has the completions of the requests that
// are known to be done, in order. Requests after one that could not be posted are not posted.
// Requests after one that failed have failed, too, because the QP has ended; a Commit that the
// peer could not perform, and an RDMA Read with StatusTimeout, are exceptions.
func (qp *QP) Do(ctx context.Context, wrs ...SendWR) (wcs []WC, err error) {
	known := sizes(wrs, new([8]int64))
	ws := make([]*helper, len(wrs))
	for i := range ws {
		ws[i] = qp.helper()
	}
	posted, refused := qp.postAll(ctx, wrs, known, ws)
	for _, w := range ws[posted:] {
		w.spare(qp)
	}
	if refused != nil {
		refused = &ListError{N: posted, Err: qp.waiting(ctx, wrs[posted].Op, refused)}
	}
	wcs, err = qp.await(ctx, wrs, ws[:posted])
	if err != nil {
		return wcs, err
	}
	return wcs, refused
}

// postAll posts wrs, waiting for free slots if necessary, and returns how many of them it has
// posted.
func (qp *QP) postAll(ctx context.Context, wrs []SendWR, known []int64, ws []*helper) (posted int, err error) {
	if len(wrs) == 0 {
		return 0, nil
	}
	err = qp.sendSlots.Wait(ctx, ErrQueueFull, func() error {
		err := qp.sendIfFull(qp.postSend(wrs[posted:], known[min(posted, len(known)):], ws[posted:]))
		var post *PostError
		switch {
		case err == nil:
			posted = len(wrs)
		case errors.As(err, &post):
			posted += post.N
			err = post.Err
		}
		return err
	})
	return posted, err
}

// await returns the completions of ws, which complete in this order. The error is that of the
// first request that failed, or was not done when ctx ended.
func (qp *QP) await(ctx context.Context, wrs []SendWR, ws []*helper) (wcs []WC, err error) {
	if len(ws) == 0 {
		return nil, nil
	}
	wcs = make([]WC, 0, len(ws))
	last := len(ws) - 1
	behind, all := ws[last].completion(ctx) // when it is done, so are the others
	for i, w := range ws {
		wc, ok := behind, all
		if i < last {
			wc, ok = w.completion(ctx)
		}
		if !ok {
			if err == nil {
				err = &ListError{N: i, Err: qp.waiting(ctx, wrs[i].Op, ctx.Err())}
			}
			break
		}
		wcs = append(wcs, wc)
		if werr := wc.Err(); werr != nil && err == nil {
			err = &ListError{N: i, Err: werr}
		}
	}
	return wcs, err
}
