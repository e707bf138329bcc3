package host

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/stag"
)

// A command is a command that a queue executes.
type command struct {
	sqe     capsule.SQE // without CID and SGL
	data    []byte      // nil: none
	timeout time.Duration
}

// do carries a command out, and returns its response, whatever its status is. The data belongs to
// the caller again when it returns. The error is that of ctx, a *LostError, or of data that the
// target has not moved.
func (q *queue) do(ctx context.Context, c *command) (capsule.CQE, error) {
	var s *slot
	select {
	case s = <-q.free:
	default:
		select {
		case s = <-q.free:
		case <-q.dead:
			return capsule.CQE{}, q.gone()
		case <-ctx.Done():
			return capsule.CQE{}, ctx.Err()
		}
	}
	return q.doIn(ctx, s, c)
}

// doIn is like do, with a slot that the caller holds.
func (q *queue) doIn(ctx context.Context, s *slot, c *command) (capsule.CQE, error) {
	if err := q.start(s, c); err != nil {
		q.giveBack(s)
		return capsule.CQE{}, err
	}
	return q.wait(ctx, s, c)
}

// start sends a command.
func (q *queue) start(s *slot, c *command) error {
	if err := q.add(s, c); err != nil {
		return err
	}
	q.push()
	return nil
}

// add prepares a command, and adds it to the commands that push posts.
func (q *queue) add(s *slot, c *command) error {
	if q.isDead() { // a command that kill has ended might otherwise be posted
		return q.gone()
	}
	s.begin(c.sqe.Opcode, c.timeout)
	wrs, err := q.prepare(s, c)
	return q.enter(s, wrs, err)
}

// enter adds the work requests that prepare has made to those that push posts. If kill was called meanwhile, prepare may have failed
// because of resources that release has closed: the command is lost like all others.
func (q *queue) enter(s *slot, wrs []iwarp.SendWR, err error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.err != nil:
		s.window.detach()
		return &LostError{Cause: q.err}
	case err != nil:
		return err
	}
	q.out = append(q.out, wrs...)
	s.phase = queued
	q.busy++
	if s.timeout > 0 {
		s.deadline = time.Now().Add(s.timeout)
		q.watch(s.deadline, s.timeout)
	}
	return nil
}

// push posts the commands that were added, unless another goroutine posts them.
func (q *queue) push() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.posting || len(q.out) == 0 {
		return
	}
	q.posting = true
	if q.busy > 1 {
		q.yield()
	}
	q.postOut()
}

// yield lets other goroutines run that are about to send a command: several are woken together when several responses have arrived.
// Their commands are then posted together, in one system call. The mutex must be held; yield releases it meanwhile.
func (q *queue) yield() {
	q.mu.Unlock()
	runtime.Gosched()
	q.mu.Lock()
}

// postOut posts commands until none are left; the caller has set posting. The mutex must be held; postOut releases it
// meanwhile.
func (q *queue) postOut() {
	for len(q.out) > 0 && q.err == nil {
		q.postAll()
		if len(q.out) > 0 {
			q.yield()
		}
	}
	q.posting = false
}

// postAll posts the present commands. A refused post ends the queue. The mutex must be held; postAll releases it meanwhile.
func (q *queue) postAll() {
	q.out, q.posted = q.posted[:0], q.out
	for i := range q.posted {
		s := &q.slots[q.posted[i].ID&0xffff]
		if s.phase = posted; s.copied {
			s.phase = sent
		}
	}
	q.mu.Unlock()
	err := q.qp.PostSend(q.posted...)
	if err != nil {
		q.refused(err)
		q.fail(err)
	}
	q.mu.Lock()
}

// refused records which commands were not sent.
func (q *queue) refused(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var post *iwarp.PostError
	if !errors.As(err, &post) {
		return
	}
	for _, wr := range q.posted[post.N:] {
		if s := &q.slots[wr.ID&0xffff]; s.phase != free {
			s.phase = queued
		}
	}
}

// isDead reports whether the queue accepts no more commands.
func (q *queue) isDead() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err != nil
}

// prepare makes the work requests of a command, which the slot holds: a registration if the data
// stays where it is, and the Send of the capsule.
func (q *queue) prepare(s *slot, c *command) ([]iwarp.SendWR, error) {
	sqe := c.sqe
	sqe.CID, sqe.Flags = s.cid, capsule.FlagSGL
	wrs, n := s.wrs[:0], capsule.SQESize
	dir := sqe.Direction()
	switch {
	case len(c.data) == 0:
		sqe.SGL = capsule.NullSGL()
	case len(c.data) > q.transfer:
		return nil, fmt.Errorf("nvme: a command has %d octets of data, and queue %d takes %d", len(c.data), q.qid, q.transfer)
	case dir == capsule.HostToController && len(c.data) <= q.inside:
		sqe.SGL = capsule.InCapsuleSGL(0, uint32(len(c.data)))
		n += copy(s.capsule[capsule.SQESize:], c.data)
	default:
		if err := q.region(s); err != nil {
			return nil, err
		}
		enable, err := s.enable(c.data, dir)
		if err != nil {
			return nil, err
		}
		wrs = append(wrs, enable)
		sqe.SGL = capsule.KeyedSGL(uint32(s.stag()), 0, uint32(len(c.data)), true)
	}
	sqe.Put(s.capsule)
	if n <= q.inline { // the QP copies it, so its completion, which costs work on this side, is not needed
		s.copied = true
		return append(wrs, iwarp.SendWR{ID: sendID(s.index), Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Inline: s.capsule[:n]}), nil
	}
	s.local[0] = q.capMR.Slice(int(s.index)*len(s.capsule), n)
	return append(wrs, iwarp.SendWR{ID: sendID(s.index), Op: iwarp.OpSend, Local: s.local[:]}), nil
}

// region makes the region of the slot. The region is bound to the connection, so that no other
// connection can use or invalidate it.
func (q *queue) region(s *slot) error {
	if s.mr != nil {
		return nil
	}
	mr, err := q.pd.AllocMR(q.transfer, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, &iwarp.MROptions{QP: q.qp})
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil { // kill was called meanwhile, and perhaps release
		return errors.Join(q.err, mr.Close())
	}
	s.mr = mr
	return nil
}

// wait returns when the command or ctx has ended. If ctx has ended, the command continues without the
// caller's memory.
func (q *queue) wait(ctx context.Context, s *slot, c *command) (capsule.CQE, error) {
	select {
	case <-s.done:
	default:
		select {
		case <-s.done:
		case <-ctx.Done():
			if q.abandon(s, c) {
				return capsule.CQE{}, ctx.Err()
			}
			<-s.done
		}
	}
	cqe, err := s.cqe, s.err
	q.giveBack(s)
	return cqe, err
}

// abandon leaves a command to the queue. It reports whether it was in time: a command that has ended
// is not abandoned.
func (q *queue) abandon(s *slot, c *command) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.phase == free {
		return false
	}
	s.to = toNone
	if s.keyed && s.phase != answered {
		s.window.abandon(c.sqe.Direction() == capsule.HostToController)
	}
	return true
}

// giveBack frees the slot for the next command.
func (q *queue) giveBack(s *slot) {
	if s != q.kept && s != q.event {
		q.free <- s
	}
}

// gone returns the error of a command that can no longer be sent.
func (q *queue) gone() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return &LostError{Cause: q.err}
}
