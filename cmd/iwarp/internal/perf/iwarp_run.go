package perf

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
)

// lastID marks the work request that ends a run.
const lastID = 1 << 63

// streamAll does n operations at every end. It allocates nothing if there is only one.
func streamAll(ends []*rdmaEnd, n int) error {
	for _, e := range ends {
		e.n = n
	}
	return each(ends, (*rdmaEnd).streamed)
}

// streamed does the operations of a run.
func (e *rdmaEnd) streamed() error {
	if err := e.stream(e.n); err != nil {
		return err
	}
	return e.settle()
}

// stream keeps as many operations outstanding as the depth allows, until n are done.
// The ID of a work request is the number of operations posted up to it: its completion
// says how many are done.
func (e *rdmaEnd) stream(n int) error {
	w := e.w
	for posted, done := 0, 0; done < n; {
		for {
			at := posted % (len(e.sends) - w.Depth)
			k := min(n-posted, e.room(posted-done))
			if k == 0 {
				break
			}
			batch := e.sends[at : at+k]
			for i := range batch {
				posted++
				batch[i].ID, batch[i].Flags = uint64(posted), 0
				if w.Moderate && i < k-1 {
					batch[i].Flags = iwarp.Unsignaled
				}
			}
			if err := e.qp.PostSend(batch...); err != nil {
				return err
			}
		}
		got, err := e.cq.Wait(context.Background(), e.wcs[:])
		if err != nil {
			return err
		}
		for i := range e.wcs[:got] {
			if err := e.wcs[i].Err(); err != nil {
				return err
			}
		}
		done = int(e.wcs[got-1].ID)
	}
	return nil
}

// room returns how many operations may be posted now, while some are outstanding: a whole
// batch, or as many as the depth allows.
func (e *rdmaEnd) room(underWay int) int {
	free := e.w.Depth - underWay
	switch {
	case e.w.Batch == 0:
		return free
	case e.w.Batch > free:
		return 0
	}
	return e.w.Batch
}

// settle returns when everything posted before it is known to have arrived: a Read
// behind a Write proves that, or the answer to an empty Send behind a Send or an Immediate.
func (e *rdmaEnd) settle() error {
	switch e.w.Op {
	case opRead, opAtomic:
		return nil
	case opWrite:
		e.last[0] = iwarp.SendWR{
			ID: lastID, Op: iwarp.OpRDMARead, Local: e.lastSGE(), Remote: part(e.theirs.src, 0, 1),
		}
		return e.awaitLast(iwarp.OpRDMARead)
	}
	e.last[0] = iwarp.SendWR{ID: lastID, Op: iwarp.OpSend, Flags: iwarp.Unsignaled}
	return e.awaitLast(iwarp.OpRecv)
}

// lastSGE returns the first octet of the destination.
func (e *rdmaEnd) lastSGE() []iwarp.SGE {
	if len(e.last[0].Local) == 1 {
		return e.last[0].Local
	}
	return []iwarp.SGE{e.dst.Slice(0, 1)}
}

// awaitLast posts last and waits for a completion of op.
func (e *rdmaEnd) awaitLast(op iwarp.Op) error {
	if err := e.qp.PostSend(e.last[:]...); err != nil {
		return err
	}
	return e.await(op)
}

// await waits for one completion, which must be of op. A receive is posted again.
func (e *rdmaEnd) await(op iwarp.Op) error {
	if _, err := e.cq.Wait(context.Background(), e.wcs[:1]); err != nil {
		return err
	}
	wc := &e.wcs[0]
	if err := wc.Err(); err != nil {
		return err
	}
	if wc.Op != op {
		return fmt.Errorf("completion of a %v, want %v", wc.Op, op)
	}
	if op == iwarp.OpRecv {
		return e.qp.PostRecv(e.recvs[wc.ID : wc.ID+1]...)
	}
	return nil
}

// converse times n operations, one after the other.
func (e *rdmaEnd) converse(n int, times []int64) ([]int64, error) {
	op := e.sends[0].Op
	wait := op
	e.sends[0].Flags = 0
	if e.w.Op == opPingPong {
		wait = iwarp.OpRecv
		e.sends[0].Flags = iwarp.Unsignaled
	}
	return stats.Times(n, times, func(int) error {
		if err := e.qp.PostSend(e.sends[:1]...); err != nil {
			return err
		}
		return e.await(wait)
	})
}

// answer serves Sends and Immediates: it posts every receive again, answers
// empty Sends, and in a ping-pong all others, too. It returns at the end of the QP.
func (e *rdmaEnd) answer() error {
	empty := []iwarp.SendWR{{Op: iwarp.OpSend, Flags: iwarp.Unsignaled}}
	e.sends[0].Flags = iwarp.Unsignaled
	for {
		n, err := e.cq.Wait(context.Background(), e.wcs[:])
		if err != nil {
			return err
		}
		e.again = e.again[:0]
		for i := range e.wcs[:n] {
			wc := &e.wcs[i]
			if err := wc.Err(); err != nil {
				return err
			}
			e.again = append(e.again, e.recvs[wc.ID])
			switch {
			case wc.Op == iwarp.OpRecvImm:
			case wc.Len == 0:
				err = e.qp.PostSend(empty...)
			case e.w.Op == opPingPong:
				err = e.qp.PostSend(e.sends[:1]...)
			}
			if err != nil {
				return err
			}
		}
		if err := e.qp.PostRecv(e.again...); err != nil {
			return err
		}
	}
}
