package target

import (
	"errors"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// An outbox holds work requests that are to be posted, in order. They are posted in lists, since the work of one call is sent
// with as few system calls as possible: the work of all completions that were taken together, and the work that workers have
// added while another goroutine was posting. The slices are reused.
type outbox struct {
	receives []iwarp.RecvWR // they are posted first: the host may send a command as soon as it has a response
	into     []iwarp.SGE    // one for each receive
	sends    []iwarp.SendWR
	local    []iwarp.SGE // of sends
	cqes     [][capsule.CQESize]byte
	octets   int // of RDMA Writes
}

func (o *outbox) empty() bool { return len(o.receives) == 0 && len(o.sends) == 0 }

func (o *outbox) clear() {
	o.receives, o.into, o.sends, o.local, o.cqes, o.octets = o.receives[:0], o.into[:0], o.sends[:0], o.local[:0], o.cqes[:0], 0
}

// receive adds a receive.
func (o *outbox) receive(r *receives, i int) {
	o.into = append(o.into, r.mr.Slice(i*r.size, r.size))
	o.receives = append(o.receives, iwarp.RecvWR{ID: uint64(i), Local: o.into[len(o.into)-1:]})
}

// send adds a work request of the send queue.
func (o *outbox) send() *iwarp.SendWR {
	o.sends = append(o.sends, iwarp.SendWR{})
	return &o.sends[len(o.sends)-1]
}

// part returns the first n octets of a buffer.
func (o *outbox) part(b *buffer, n int) []iwarp.SGE {
	o.local = append(o.local, b.mr.Slice(0, n))
	return o.local[len(o.local)-1:]
}

// cqe returns a copy of a response.
func (o *outbox) cqe(c *[capsule.CQESize]byte) []byte {
	o.cqes = append(o.cqes, *c)
	return o.cqes[len(o.cqes)-1][:]
}

// flush posts the contents of the outbox, or leaves them to the goroutine that is posting. No lock may be held.
func (q *queue) flush() {
	q.mu.Lock()
	if q.posting {
		q.mu.Unlock()
		return
	}
	q.posting = true
	for !q.out.empty() && q.stage != ended {
		q.out, q.posted = q.posted, q.out
		q.mu.Unlock()
		over, unposted, err := q.post(&q.posted)
		q.mu.Lock()
		for _, wr := range unposted {
			q.kept = append(q.kept, int(wr.ID))
		}
		q.posted.clear()
		if err == nil && over.empty() {
			continue
		}
		more := q.postReads() // instead of those that were not posted
		q.mu.Unlock()
		over.end()
		more.end()
		if err != nil {
			q.abort() // what was posted keeps its buffer, which is given back when the connection has ended
		}
		q.mu.Lock()
	}
	q.posting = false
	q.posts.Broadcast()
	q.mu.Unlock()
}

// turnOctets is after how many octets for the host a turn posts its work.
const turnOctets = 64 << 10

// isFull reports whether a turn has to post its work.
func (q *queue) isFull() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.out.octets >= turnOctets
}

// settle is like flush, but returns only when nothing is left of the contents of the outbox.
func (q *queue) settle() {
	q.flush()
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.posting {
		q.posts.Wait()
	}
}

// post posts the contents of an outbox, and returns the commands whose RDMA Read was not posted, and the receives that were
// not. The error is that of a failing connection.
func (q *queue) post(o *outbox) (over fetchesOver, unposted []iwarp.RecvWR, err error) {
	if err := q.postReceives(o.receives); err != nil {
		var post *iwarp.PostError
		if errors.As(err, &post) {
			unposted = o.receives[post.N:]
		}
		q.drop(o.sends, &over)
		return over, unposted, err
	}
	for sends := o.sends; len(sends) > 0; {
		err := q.qp.PostSend(sends...)
		if err == nil {
			break
		}
		var post *iwarp.PostError
		if !errors.As(err, &post) {
			q.drop(sends, &over)
			return over, nil, err
		}
		sends = sends[post.N:]
		if sends[0].Op != iwarp.OpRDMARead || !errors.Is(err, iwarp.ErrLimit) {
			q.drop(sends, &over)
			return over, nil, err
		}
		over.refused.push(q.unread(sends[0].ID)) // larger than the window of the Solicitor
		sends = sends[1:]
	}
	return over, nil, nil
}

func (q *queue) postReceives(list []iwarp.RecvWR) error {
	switch s := q.t.shared; {
	case len(list) == 0:
		return nil
	case s != nil:
		return s.srq.PostRecv(list...)
	}
	return q.qp.PostRecv(list...)
}

// drop collects the commands whose RDMA Read is not posted.
func (q *queue) drop(sends []iwarp.SendWR, over *fetchesOver) {
	for i := range sends {
		if sends[i].Op == iwarp.OpRDMARead {
			over.dropped.push(q.unread(sends[i].ID))
		}
	}
}

// unread takes back the task of an RDMA Read that was not posted.
func (q *queue) unread(id uint64) *task {
	b := q.bufs.at(int(id))
	tk := b.task
	b.task = nil
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reading--
	return tk
}

// discard empties the outbox of a queue that has ended. mu is held.
func (q *queue) discard() (over fetchesOver) {
	for q.posting {
		q.posts.Wait()
	}
	for _, wr := range q.out.receives {
		q.kept = append(q.kept, int(wr.ID))
	}
	q.mu.Unlock()
	q.drop(q.out.sends, &over)
	q.mu.Lock()
	q.out.clear()
	return over
}
