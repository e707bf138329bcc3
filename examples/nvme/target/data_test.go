package target

import (
	"bytes"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/solicit"
	"github.com/goiwarp/iwarp/stag"
)

// big is the length of the longest request of Linux over siw.
const big = 255 * lba

// TestNVME_3_ReadsOutstanding: a host that answers n Reads at a time gets no more, and a target configured for n
// requests no more.
func TestNVME_3_ReadsOutstanding(t *testing.T) {
	for _, n := range []int{1, 2, 16} {
		virtual(t, func(t *testing.T) {
			b := memoryOf(t, 128*8*lba)
			w := newWorld(t, "pipe", &Config{ORD: 16, UnknownORD: 1}, b)
			s := newHost(t, w.addr).connect(0)
			q := s.queue(128, func(qc *iwarp.QPConfig) { qc.IRD = n })
			require.Equal(t, n, w.queue(1).qp.ORD())
			p := pattern(8*lba, 1)
			sgl := kept(q.readable(p))
			for i := range 128 {
				q.send(rw(capsule.OpWrite, uint64(8*i), 8, sgl))
			}
			for range 128 {
				a, err := q.next()
				require.NoError(t, err)
				require.Equal(t, capsule.Success, a.Status)
				require.LessOrEqual(t, w.queue(1).outstanding(), n)
			}
		})
	}
}

// queue finds a queue of the target.
func (w *world) queue(qid uint16) *queue {
	for _, q := range w.target.all() {
		if q.m.QID() == qid {
			return q
		}
	}
	w.t.Fatalf("no queue %d", qid)
	return nil
}

// outstanding returns how many RDMA Reads are posted and not answered.
func (q *queue) outstanding() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reading
}

// TestNVME_26_DataComesBeforeTheResponse: each response is checked as it comes.
func TestNVME_26_DataComesBeforeTheResponse(t *testing.T) {
	w := newWorld(t, "tcp", nil, nil)
	q := newHost(t, w.addr).connect(1).io[0]
	const n = 32
	want, bufs, where := make([][]byte, n), make([][]byte, n), map[uint16]int{}
	for i := range n {
		want[i] = pattern(16*lba, byte(i))
		require.Equal(t, capsule.Success, q.write(uint64(16*i), want[i]).Status)
	}
	for range 10 {
		for i := range n {
			bufs[i] = make([]byte, 16*lba)
			where[q.send(rw(capsule.OpRead, uint64(16*i), 16, q.writable(bufs[i])))] = i
		}
		for range n {
			a, err := q.next()
			require.NoError(t, err)
			i := where[a.CID]
			require.Equal(t, want[i], bufs[i])
		}
	}
}

func TestNVME_27_Invalidation(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		s := newHost(t, w.addr).connect(1)
		q := s.io[0]
		p := make([]byte, lba)
		for name, sgl := range map[string]capsule.SGL{"to be invalidated": q.writable(p), "to be kept": kept(q.writable(p))} {
			for _, at := range []uint64{1 << 40, 1} { // the first is out of range
				if at == 1 && name == "to be invalidated" {
					sgl = q.writable(p)
				}
				a := q.do(rw(capsule.OpRead, at, 1, sgl))
				require.Equal(t, at == 1, a.Status.OK())
				want := stag.STag(sgl.Key())
				if name == "to be kept" {
					want = 0
				}
				require.Equal(t, want, a.stag, "%s at %d", name, at)
			}
		}
		in := q.readable(p)
		require.Equal(t, stag.STag(in.Key()), q.do(rw(capsule.OpWrite, 1, 1, in)).stag)
		require.Zero(t, q.ok(capsule.FlushSQE(0, 1)).stag)
		page := s.admin.writable(make([]byte, 4096))
		require.Equal(t, stag.STag(page.Key()), s.admin.ok(capsule.Identify{CNS: capsule.CNSController}.SQE(0, page)).stag)
	})
}

// TestNVME_28_SinksAreOutOfReach: a host that knows a sink's STag cannot use it, on that queue or on another.
func TestNVME_28_SinksAreOutOfReach(t *testing.T) {
	virtual(t, func(t *testing.T) {
		b, open := blocked(t, 1)
		w := newWorld(t, "pipe", nil, b)
		s := newHost(t, w.addr).connect(2)
		p := pattern(lba, 1)
		cid := s.io[0].send(rw(capsule.OpWrite, 1, 1, s.io[0].readable(p)))
		time.Sleep(time.Second)
		sink := w.queue(1).bufs.at(0)
		require.Equal(t, p, sink.mem)
		at := sink.mr.Advertise(0, lba)
		for _, attack := range []func(l *line) iwarp.SendWR{
			func(l *line) iwarp.SendWR {
				return iwarp.SendWR{Op: iwarp.OpRDMAWrite, Inline: []byte("forged"), Remote: at}
			},
			func(l *line) iwarp.SendWR {
				c := capsule.FlushSQE(9, 1)
				return iwarp.SendWR{Op: iwarp.OpSendInvalidate, Inline: c.Append(nil), Invalidate: at.STag}
			},
		} {
			other := s.queue(32, nil)
			require.NoError(t, other.qp.PostSend(attack(other)))
			<-other.qp.Done()
			require.NotNil(t, other.qp.Terminated())
		}
		require.Equal(t, p, sink.mem)
		close(open)
		require.Equal(t, capsule.Success, s.io[0].wait(cid).Status)
		require.NoError(t, s.io[0].qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Inline: []byte("forged"), Remote: at}))
		<-s.io[0].qp.Done()
		require.Equal(t, capsule.Success, s.io[1].read(1, make([]byte, lba)).Status)
	})
}

// TestNVME_29_FailedRead: no response follows, and only the queue ends.
func TestNVME_29_FailedRead(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		s := newHost(t, w.addr).connect(2)
		q := s.io[0]
		sgl := q.window(make([]byte, lba), stag.LocalWrite|stag.RemoteWrite) // cannot be read
		q.send(rw(capsule.OpWrite, 1, 1, sgl))
		_, err := q.next()
		require.Error(t, err)
		<-q.qp.Done()
		require.Equal(t, capsule.Success, s.io[1].write(1, pattern(lba, 1)).Status)
		require.Zero(t, w.settled().Memory)
	})
}

func TestNVME_30_TheLongestRequest(t *testing.T) {
	for _, cfg := range []*Config{{}, {Solicitor: iwarp.NewSolicitor(solicit.Config{Fixed: 1 << 20})}} {
		virtual(t, func(t *testing.T) {
			w := newWorld(t, "pipe", cfg, nil)
			q := newHost(t, w.addr).connect(1).io[0]
			p, got := pattern(big, 1), make([]byte, big)
			before := q.qp.Stats().Received
			require.Equal(t, capsule.Success, q.write(1, p).Status)
			require.Equal(t, capsule.Success, q.read(1, got).Status)
			require.Equal(t, p, got)
			after := q.qp.Stats().Received
			require.EqualValues(t, 1, after.ReadRequest.Messages-before.ReadRequest.Messages)
			require.EqualValues(t, 1, after.RDMAWrite.Messages-before.RDMAWrite.Messages)
			require.EqualValues(t, big, after.RDMAWrite.Octets-before.RDMAWrite.Octets)
		})
	}
}

// TestNVME_73_CompareLooksAtEachOctet: however long the command is. It changes nothing.
func TestNVME_73_CompareLooksAtEachOctet(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		q := newHost(t, w.addr).connect(1).io[0]
		const n = 2*compareSize + lba
		p, got := pattern(n, 1), make([]byte, n)
		compare := func(with []byte) capsule.Status {
			return q.do(rw(capsule.OpCompare, 1, n/lba, q.readable(with))).Status
		}
		require.Equal(t, capsule.Success, q.write(1, p).Status)
		require.Equal(t, capsule.Success, compare(p))
		for _, at := range []int{0, lba, compareSize - 1, compareSize, 2 * compareSize, n - 1} {
			other := bytes.Clone(p)
			other[at] ^= 1
			require.Equal(t, capsule.StatusCompareFailure, compare(other), "octet %d", at)
		}
		require.Equal(t, capsule.Success, q.read(1, got).Status)
		require.Equal(t, p, got)
	})
}

// TestNVME_31_BuffersOfData: they are in use until the response has left, which a host can delay.
func TestNVME_31_BuffersOfData(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		s := newHost(t, w.addr).connect(0)
		// With one receive, the host reads nothing after a response that it has not taken.
		q, err := s.dial(1, 32, func(qc *iwarp.QPConfig) { qc.Setup = nil })
		require.NoError(t, err)
		require.NoError(t, q.post(q.qp, 0))
		require.Equal(t, capsule.Success, q.connect(storage, s.cntlid).Status) // and posts it again
		p, got := pattern(big, 3), make([]byte, big)
		require.Equal(t, capsule.Success, q.write(0, p).Status)
		flush1, flush2 := q.send(capsule.FlushSQE(0, 1)), q.send(capsule.FlushSQE(0, 1))
		time.Sleep(time.Millisecond)
		read := q.send(rw(capsule.OpRead, 0, 255, q.writable(got)))
		st := w.settled()
		require.EqualValues(t, sizeOf(big), st.Memory)
		require.Zero(t, st.Running, "it was answered")
		q.wait(flush1)
		q.wait(flush2)
		require.Equal(t, capsule.Success, q.wait(read).Status)
		require.Equal(t, p, got)
		require.Zero(t, w.settled().Memory)
	})
}

// TestNVME_76_StatusesOfBackEnds: errors of the medium become statuses, and the queue lives on.
func TestNVME_76_StatusesOfBackEnds(t *testing.T) {
	virtual(t, func(t *testing.T) {
		b := fakeOf(t)
		w := newWorld(t, "pipe", nil, b)
		q := newHost(t, w.addr).connect(1).io[0]
		p := pattern(lba, 1)
		for _, c := range []struct {
			fault backend.Fault
			do    func() answer
			want  capsule.Status
		}{
			{backend.Fault{Call: backend.CallWrite, Err: syscall.EIO}, func() answer { return q.write(1, p) }, capsule.StatusWriteFault},
			{backend.Fault{Call: backend.CallWrite, Err: syscall.ENOSPC}, func() answer { return q.write(1, p) }, capsule.StatusCapacityExceeded},
			{backend.Fault{Call: backend.CallRead, Err: syscall.EIO}, func() answer { return q.read(1, p) }, capsule.StatusReadError},
			{backend.Fault{Call: backend.CallSync, Err: syscall.EIO}, func() answer { return q.do(capsule.FlushSQE(0, 1)) }, capsule.StatusWriteFault},
		} {
			require.Equal(t, capsule.Success, q.write(2, pattern(lba, 2)).Status)
			b.Inject(c.fault)
			require.Equal(t, c.want, c.do().Status)
			b.Heal()
		}
		require.Equal(t, capsule.StatusWriteFault.WithDNR(), q.write(2, p).Status, "after a failed sync")
		require.Equal(t, capsule.StatusInternalError, statusOf(errors.Join(net.ErrClosed)))
	})
}

// TestNVME_89_RangesInTooMuchMemory: a host may describe more memory than its ranges need, up to 2^24-1 octets. The
// target has no buffer of that length.
func TestNVME_89_RangesInTooMuchMemory(t *testing.T) {
	for _, most := range []int{32 << 20, 0} {
		virtual(t, func(t *testing.T) {
			w := newWorld(t, "pipe", &Config{Limits: Limits{QueueMemory: most}}, nil)
			q := newHost(t, w.addr).connect(1).io[0]
			require.Equal(t, capsule.Success, q.write(1, pattern(lba, 1)).Status)
			list := append(capsule.DSMRange{SLBA: 1, NLB: 1}.Append(nil), make([]byte, 1<<24-1-capsule.DSMRangeSize)...)
			began := time.Now()
			q.ok(capsule.DSM{NSID: 1, AD: true}.SQE(0, q.readable(list)))
			require.Equal(t, began, time.Now(), "it has waited for no memory")
			got := pattern(lba, 2)
			require.Equal(t, capsule.Success, q.read(1, got).Status)
			require.Equal(t, make([]byte, lba), got)
		})
	}
}
