package target

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/goiwarp/iwarp"
)

// A life is the progress of the end of a target. It only moves forward.
//
//	serving    connections and commands are accepted
//	draining   Shutdown: commands of I/O queues are no longer begun
//	stopping   Shutdown: connections are refused, and existing ones end gracefully
//	closed     connections are refused, and existing ones end at once
type life uint32

const (
	serving life = iota
	draining
	stopping
	closed
)

// is reports whether the life of the target has reached l.
func (t *Target) is(l life) bool { return life(t.life.Load()) >= l }

// advance goes on to l, unless the target is there or further.
func (t *Target) advance(l life) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.is(l) {
		t.life.Store(uint32(l))
	}
}

// A stage is the progress of the end of a connection. It only moves forward.
type stage uint8

const (
	living   stage = iota
	closing        // after the posted work
	aborting       // at once
	ended          // nothing is posted any more
)

// abort ends the connection at once. It does not wait.
func (q *queue) abort() {
	if q.t.is(stopping) && !q.t.is(closed) {
		q.close()
		return
	}
	q.cancel()
	q.finally(aborting, (*iwarp.QP).Abort)
}

// close ends the connection when all that was posted is done. It does not wait.
func (q *queue) close() {
	q.finally(closing, func(qp *iwarp.QP) error {
		q.settle()
		return qp.Close()
	})
}

// finally calls f in a goroutine, once: Abort and Close wait for the end of the connection.
func (q *queue) finally(how stage, f func(*iwarp.QP) error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stage >= how || q.qp == nil {
		return
	}
	q.stage = how
	q.t.queues.Go(func() { _ = f(q.qp) })
}

// end releases the resources of a connection that has ended or was not established. It waits for back ends that work for it.
func (q *queue) end() {
	t := q.t
	q.cancel()
	q.mu.Lock()
	q.stage = ended
	unposted := q.discard()
	q.mu.Unlock()
	unposted.end()
	q.lost()
	waited := t.budget.leave(q)
	for tk := waited.pop(); tk != nil; tk = waited.pop() {
		tk.drop()
	}
	q.mu.Lock()
	over := q.postReads()
	q.mu.Unlock()
	over.end()
	q.tasks.Wait()
	q.release()
	t.mu.Lock()
	delete(t.live, q.m)
	t.mu.Unlock()
}

// lost tells the model that no further message is a command. It may be called again.
func (q *queue) lost() {
	acts := q.t.actions.get()
	acts.list = q.t.model.Lost(q.m, acts.list)
	q.t.perform(nil, acts)
}

// release frees the memory of a queue, which nothing uses any more.
func (q *queue) release() {
	t := q.t
	q.bufs.close(t)
	t.budget.settle(q)
	switch {
	case t.shared != nil && q.recvs != nil:
		t.shared.takeBack(q)
	case q.recvs != nil && q.recvs.mr != nil:
		_ = q.recvs.mr.Close()
	}
	if q.cq != nil {
		_ = q.cq.Close()
	}
}

// Shutdown ends the target without losing data that hosts were told are written: it refuses new connections, finishes the
// commands that have begun, flushes all namespaces, ends the connections gracefully, and closes the target. When ctx ends, or
// after 10 s, it ends the rest like Close, which waits for working back ends. The namespaces are still flushed, for 10 s more.
// The error reports commands that were still running then, and namespaces that could not be flushed. The program must close
// the listeners, preferably before. If several calls run at the same time, the one whose ctx ends first decides.
func (t *Target) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownLimit)
	defer cancel()
	t.model.Stop()
	t.advance(draining)
	errs := append([]error{t.drain(ctx)}, t.flushAll(context.WithoutCancel(ctx))...)
	t.advance(stopping)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		t.endAll()
	}()
	select {
	case <-gone:
	case <-ctx.Done():
	}
	return errors.Join(append(errs, t.Close())...)
}

// flushAll flushes all namespaces at once: one whose medium hangs does not delay the others.
func (t *Target) flushAll(ctx context.Context) []error {
	ctx, cancel := context.WithTimeout(ctx, shutdownLimit)
	defer cancel()
	volatile := t.model.Volatile()
	errs := make([]error, len(volatile))
	var all sync.WaitGroup
	for i, n := range volatile {
		all.Go(func() {
			if err := handleOf(n).flush(ctx); err != nil {
				errs[i] = fmt.Errorf("nvme: flush of namespace %d: %w", n.NSID, err)
			}
		})
	}
	all.Wait()
	return errs
}

// drain waits until no command is being executed.
func (t *Target) drain(ctx context.Context) error {
	for n := t.tasks.Load(); n > 0; n = t.tasks.Load() {
		select {
		case <-t.idle:
		case <-ctx.Done():
			return fmt.Errorf("nvme: %d commands did not end: %w", n, ctx.Err())
		}
	}
	t.drained() // another Shutdown may be waiting
	return nil
}

// drained tells one drain to check again.
func (t *Target) drained() {
	select {
	case t.idle <- struct{}{}:
	default:
	}
}

// endAll ends all connections, and returns when all their resources are released.
func (t *Target) endAll() {
	acts := t.actions.get()
	acts.list = t.model.CloseAll(acts.list)
	t.perform(nil, acts)
	for _, q := range t.all() {
		q.abort()
	}
	t.queues.Wait()
}

func (t *Target) all() (list []*queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range t.live {
		list = append(list, q)
	}
	return list
}

// Close ends all connections at once, and waits for working back ends. It does not answer outstanding commands, which hosts
// repeat when they are connected again. Data that were not flushed may be lost: see Shutdown. Close also closes an RNIC that
// New has opened. Close is idempotent.
func (t *Target) Close() (err error) {
	t.model.Stop()
	t.advance(closed) // first, so that no command is answered with an effect of Close
	t.cancel()
	t.endAll()
	t.release.Do(func() { err = t.releaseAll() })
	return err
}

// releaseAll releases everything except connections.
func (t *Target) releaseAll() error {
	t.budget.timer.Stop()
	t.mu.Lock()
	pools := t.pools
	t.mu.Unlock()
	for _, w := range pools {
		w.wait()
	}
	err := t.releaseVerbs()
	t.other.Wait()
	return err
}
