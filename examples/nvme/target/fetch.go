package target

import (
	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/solicit"
)

// fetch reads the data of a command from the host, when its turn comes.
func (q *queue) fetch(tk *task, turn bool) {
	q.mu.Lock()
	q.fetches.push(tk)
	over := q.postReads()
	q.mu.Unlock()
	over.end()
	if !turn {
		q.flush()
	}
}

// fetchesOver holds tasks that do not get their data.
type fetchesOver struct{ dropped, refused taskList }

func (o *fetchesOver) empty() bool { return o.dropped.empty() && o.refused.empty() }

func (o *fetchesOver) end() {
	for tk := o.dropped.pop(); tk != nil; tk = o.dropped.pop() {
		tk.drop()
	}
	for tk := o.refused.pop(); tk != nil; tk = o.refused.pop() {
		tk.finish(capsule.StatusInternalError)
	}
}

// postReads adds RDMA Reads to the outbox while the host answers one more at a time. Reads that have to wait are not posted,
// so that responses do not wait behind them. mu must be held.
func (q *queue) postReads() (over fetchesOver) {
	for q.stage == ended || q.reading < q.m.ORD() {
		tk := q.fetches.pop()
		if tk == nil {
			break
		}
		if q.stage == ended || !q.m.Begin(tk.ref) {
			over.dropped.push(tk)
			continue
		}
		q.reading++
		q.postRead(tk)
	}
	return over
}

// latencyMost is the length of RDMA Reads for which something waits; longer ones are bulk. Octets.
const latencyMost = 4096

func (q *queue) postRead(tk *task) {
	n := int(tk.data.Length)
	wr := q.out.send()
	wr.ID, wr.Op, wr.Class, wr.Remote = uint64(tk.buf.id), iwarp.OpRDMARead, solicit.Bulk, remote(&tk.data)
	if n <= latencyMost {
		wr.Class = solicit.Latency
	}
	wr.Local = q.out.part(tk.buf, n)
	tk.buf.task = tk
}

// fetched continues a command whose RDMA Read has ended.
func (q *queue) fetched(wc *iwarp.WC) {
	b := q.bufs.at(int(wc.ID))
	tk := b.task
	b.task = nil
	cur := tk.current()
	acts := q.t.actions.get()
	acts.turn = true
	q.mu.Lock()
	q.reading--
	over := q.postReads()
	switch wc.Status {
	case iwarp.StatusSuccess:
		q.t.stats.fetched.Add(uint64(tk.data.Length))
		acts.list = q.m.Fetched(q.t.now(), tk.ref, b.mem[:tk.data.Length], acts.list)
	case iwarp.StatusTimeout: // the window of the Solicitor was full for too long; the queue continues
		q.t.stats.busy.Add(1)
		acts.list = q.m.Finish(tk.ref, capsule.StatusBusy, acts.list)
	default: // the connection ends, and with it the command
	}
	q.own(acts, &cur)
	q.mu.Unlock()
	over.end()
	if len(acts.tasks) == 0 {
		tk.drop()
	}
	q.t.perform(q, acts)
}
