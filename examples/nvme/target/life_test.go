package target

import (
	"context"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// TestNVME_78_BlockedBackEnd: everything that does not need that back end goes on.
func TestNVME_78_BlockedBackEnd(t *testing.T) {
	virtual(t, func(t *testing.T) {
		b, open := blocked(t, 1)
		w := newWorld(t, "pipe", &Config{Limits: Limits{Workers: 2}}, b)
		other := memoryOf(t, diskSize)
		require.NoError(t, w.target.AddNamespace(storage, Namespace{NSID: 2, Backend: other}))
		s := newHost(t, w.addr).connect(1)
		q := s.io[0]
		var stuck []uint16
		for range 20 {
			stuck = append(stuck, q.send(rw(capsule.OpRead, 1, 1, q.writable(make([]byte, lba)))))
		}
		p := pattern(lba, 1)
		write := capsule.RW{Opcode: capsule.OpWrite, NSID: 2, SLBA: 3}
		require.Equal(t, capsule.Success, q.do(write.SQE(0, q.readable(p))).Status, "another namespace, by an RDMA Read")
		s.admin.ok(capsule.KeepAliveSQE(0))
		require.Equal(t, capsule.StatusLBAOutOfRange, q.do(rw(capsule.OpRead, 1<<40, 1, q.writable(p))).Status)
		require.EqualValues(t, 20, w.settled().Running)
		close(open)
		for _, cid := range stuck {
			require.Equal(t, capsule.Success, q.wait(cid).Status)
		}
	})
}

// TestNVME_79_NoDeadlock: one Read at a time, a full queue, only writes of the greatest length, and memory for just one
// of them. Commands that wait too long for a buffer are answered with 0x022.
func TestNVME_79_NoDeadlock(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", &Config{Limits: Limits{QueueMemory: 4 << 20, Memory: 5 << 20}}, nil)
		s := newHost(t, w.addr).connect(0)
		var lines []*line
		for range 2 {
			lines = append(lines, s.queue(128, func(qc *iwarp.QPConfig) { qc.IRD = 1 }))
		}
		p := pattern(big, 1)
		all(2, func(k int) {
			q := lines[k]
			sgl := kept(q.readable(p))
			for range 127 {
				q.send(rw(capsule.OpWrite, 3, 255, sgl))
			}
			flush := q.send(capsule.FlushSQE(0, 1))
			for i := range 128 {
				a, err := q.next()
				if err != nil || !a.Status.OK() || a.CID == flush && i > 20 {
					t.Error(i, err, a.Status)
				}
			}
		})
		st := w.target.Stats()
		require.Positive(t, st.Waits)
		require.LessOrEqual(t, st.MostMemory, int64(5<<20))
		require.Zero(t, st.Busy)
	})
}

// TestNVME_89_MemoryBudget: commands that wait for longer than 5 s are answered with 0x022, without DNR, and the rest go
// on.
func TestNVME_89_MemoryBudget(t *testing.T) {
	virtual(t, func(t *testing.T) {
		b, open := blocked(t, 1)
		w := newWorld(t, "pipe", &Config{Limits: Limits{QueueMemory: 2 << 20, Memory: 3 << 20}}, b)
		s := newHost(t, w.addr).connect(2)
		q, other := s.io[0], s.io[1]
		began := time.Now()
		got := make([]byte, big)
		var stuck, late []uint16
		for range 2 {
			stuck = append(stuck, q.send(rw(capsule.OpRead, 0, 255, kept(q.writable(got)))))
		}
		for range 3 {
			late = append(late, q.send(rw(capsule.OpRead, 300, 1, kept(q.writable(got[:lba])))))
		}
		require.EqualValues(t, 2<<20, w.settled().Memory, "what the queue may have")
		require.Equal(t, capsule.Success, other.read(300, make([]byte, big)).Status, "another queue has memory left")
		for _, cid := range late {
			require.Equal(t, capsule.StatusBusy, q.wait(cid).Status)
			require.Equal(t, 5*time.Second, time.Since(began))
		}
		st := w.settled()
		require.EqualValues(t, 3, st.Busy)
		require.EqualValues(t, 2<<20, st.Memory)
		third := other.send(rw(capsule.OpRead, 0, 255, kept(other.writable(got))))
		waits := other.send(rw(capsule.OpRead, 300, 1, kept(other.writable(make([]byte, lba)))))
		time.Sleep(time.Second)
		close(open)
		for _, cid := range stuck {
			require.Equal(t, capsule.Success, q.wait(cid).Status)
		}
		require.Equal(t, capsule.Success, other.wait(third).Status)
		require.Equal(t, capsule.Success, other.wait(waits).Status)
	})
}

// TestNVME_89_ReadsOfMemory: from a back end that never waits, a queue reads at most 2 MiB, or one command, ahead of
// what is sent. From other back ends it may read as much at a time as its limits allow.
func TestNVME_89_ReadsOfMemory(t *testing.T) {
	for _, c := range []struct {
		waits bool
		mdts  int
		want  int64
	}{{false, 8, 2 << 20}, {false, 10, 4 << 20}, {true, 8, 8 << 20}} {
		virtual(t, func(t *testing.T) {
			var b backend.Backend
			if c.waits {
				b = fakeOf(t)
			}
			w := newWorld(t, "pipe", &Config{MDTS: c.mdts}, b)
			q := newHost(t, w.addr).connect(1).io[0]
			n := capsule.PageSize << c.mdts
			sgl := kept(q.writable(make([]byte, n)))
			for range 20 {
				q.send(rw(capsule.OpRead, 0, n/lba, sgl))
			}
			for range 20 {
				a, err := q.next()
				require.NoError(t, err)
				require.Equal(t, capsule.Success, a.Status)
			}
			require.Equal(t, c.want, w.target.Stats().MostMemory)
		})
	}
}

func TestNVME_84_LostQueues(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		s := newHost(t, w.addr).connect(2)
		require.NoError(t, s.io[0].qp.Abort())
		time.Sleep(time.Second)
		s.admin.ok(capsule.KeepAliveSQE(0))
		require.Equal(t, capsule.Success, s.io[1].write(1, pattern(lba, 1)).Status)
		again, err := s.dial(1, 32, nil)
		require.NoError(t, err)
		require.Equal(t, capsule.Success, again.connect(storage, s.cntlid).Status)
		require.NoError(t, s.admin.qp.Close())
		<-s.io[1].qp.Done()
		<-again.qp.Done()
		require.Zero(t, w.settled().Queues)
	})
}

// TestNVME_85_BackEndAtWorkWhenTheQueueEnds: the buffer is given back only when the back end returns.
func TestNVME_85_BackEndAtWorkWhenTheQueueEnds(t *testing.T) {
	virtual(t, func(t *testing.T) {
		b, open := blocked(t, 1)
		w := newWorld(t, "pipe", nil, b)
		s := newHost(t, w.addr).connect(1)
		p := pattern(lba, 1)
		s.io[0].send(rw(capsule.OpWrite, 1, 1, s.io[0].readable(p)))
		time.Sleep(time.Second)
		require.NoError(t, s.io[0].qp.Abort())
		st := w.settled()
		require.Equal(t, 1, st.Running)
		require.EqualValues(t, lba, st.Memory)
		q := w.queue(1)
		require.NotNil(t, q.bufs.at(0), "registered still")
		close(open)
		st = w.settled()
		require.Zero(t, st.Running)
		require.Zero(t, st.Memory)
		require.Nil(t, q.bufs.at(0))
		got := make([]byte, lba)
		require.NoError(t, b.ReadAt(context.Background(), got, lba))
		require.Equal(t, p, got)
	})
}

// writing keeps a write in progress until open is closed.
func writing(t *testing.T) (w *world, q *line, open chan struct{}) {
	b, open := blocked(t, 1)
	w = newWorld(t, "pipe", nil, b)
	q = newHost(t, w.addr).connect(1).io[0]
	q.send(rw(capsule.OpWrite, 1, 1, q.readable(pattern(lba, 1))))
	time.Sleep(time.Second)
	return w, q, open
}

// TestNVME_86_CloseAnswersNothing: an error because of the target's end would be final to a host. The host repeats
// unanswered commands.
func TestNVME_86_CloseAnswersNothing(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w, q, open := writing(t)
		w.target.advance(closed) // as Close does, which now waits for a processor
		close(open)
		w.settled()
		require.NoError(t, w.target.Close())
		_, err := q.next()
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// TestNVME_86_Shutdown: running commands are finished and answered, written data is flushed, and then the connections
// end.
func TestNVME_86_Shutdown(t *testing.T) {
	virtual(t, func(t *testing.T) {
		b, open := blocked(t, 1)
		w := newWorld(t, "pipe", nil, b)
		h := newHost(t, w.addr)
		s := h.connect(1)
		q := s.io[0]
		require.Equal(t, capsule.Success, q.write(2, pattern(lba, 1)).Status)
		running := q.send(rw(capsule.OpWrite, 1, 1, q.readable(pattern(lba, 1))))
		time.Sleep(time.Second)
		ended := make(chan error, 1)
		go func() { ended <- w.target.Shutdown(context.Background()) }()
		time.Sleep(time.Second)
		late := q.send(capsule.FlushSQE(0, 1))
		_, err := h.dial(0, 32, nil)
		require.Equal(t, capsule.RejectNoResources, rejected(t, err))
		s.admin.ok(capsule.KeepAliveSQE(0))
		require.Zero(t, b.Count(backend.CallSync))
		close(open)
		require.Equal(t, capsule.Success, q.wait(running).Status)
		_, err = q.next()
		require.ErrorIs(t, err, net.ErrClosed, "command %d was not begun", late)
		require.NoError(t, q.qp.Err(), "a graceful end")
		require.NoError(t, <-ended)
		require.Equal(t, 1, b.Count(backend.CallSync))
		require.NoError(t, w.target.Close(), "again")
	})
}

// TestNVME_86_ShutdownsAtTheSameTime: each of them learns that the command has ended, even if no receive of an SRQ
// completes then.
func TestNVME_86_ShutdownsAtTheSameTime(t *testing.T) {
	virtual(t, func(t *testing.T) {
		b, open := blocked(t, 1)
		w := newWorld(t, "pipe", &Config{SRQ: 200}, b)
		q := newHost(t, w.addr).connect(1).io[0]
		running := q.send(rw(capsule.OpWrite, 1, 1, q.readable(pattern(lba, 1))))
		time.Sleep(time.Second)
		ended := make(chan error, 3)
		for range cap(ended) {
			go func() { ended <- w.target.Shutdown(context.Background()) }()
		}
		time.AfterFunc(time.Second, func() { close(open) })
		require.Equal(t, capsule.Success, q.wait(running).Status)
		for range cap(ended) {
			require.NoError(t, <-ended)
		}
	})
}

// TestNVME_86_CommandThatIsJustComing: a command that was accepted in time, but has no task yet, is carried out. A
// Shutdown waits for it, since its flush follows everything that hosts are told is done.
func TestNVME_86_CommandThatIsJustComing(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		l := newHost(t, w.addr).connect(1).io[0]
		synctest.Wait()
		q, before := w.queue(1), w.target.Stats().Commands
		over, cancel := context.WithCancel(context.Background())
		cancel()
		cid := func() uint16 {
			q.mu.Lock() // so that the command comes no further
			defer q.mu.Unlock()
			cid := l.send(rw(capsule.OpWrite, 1, 1, capsule.InCapsuleSGL(0, lba)), pattern(lba, 1)...)
			for i := 0; w.target.Stats().Commands == before && i < 1e7; i++ {
				runtime.Gosched()
			}
			w.target.advance(draining)
			require.ErrorIs(t, w.target.drain(over), context.Canceled)
			return cid
		}()
		require.Equal(t, capsule.Success, l.wait(cid).Status)
		require.NoError(t, w.target.drain(context.Background()))
		late := l.send(capsule.FlushSQE(0, 1))
		require.NoError(t, w.target.Shutdown(context.Background()))
		_, err := l.next()
		require.ErrorIs(t, err, net.ErrClosed, "command %d was not begun", late)
	})
}

func TestNVME_86_ShutdownTakesTenSeconds(t *testing.T) {
	virtual(t, func(t *testing.T) {
		b, open := blocked(t, 1)
		other := fakeOf(t)
		w := newWorld(t, "pipe", nil, b)
		require.NoError(t, w.target.AddNamespace(storage, Namespace{NSID: 2, Backend: other}))
		q := newHost(t, w.addr).connect(1).io[0]
		require.Equal(t, capsule.Success, q.wait(q.send(capsule.RW{Opcode: capsule.OpWrite, NSID: 2}.SQE(0, q.readable(pattern(lba, 2))))).Status)
		q.send(rw(capsule.OpWrite, 1, 1, q.readable(pattern(lba, 1))))
		time.Sleep(time.Second)
		time.AfterFunc(11*time.Second, func() { close(open) })
		began := time.Now()
		require.ErrorIs(t, w.target.Shutdown(context.Background()), context.DeadlineExceeded)
		require.Equal(t, 11*time.Second, time.Since(began), "it waits for the back end even so")
		require.Equal(t, 1, other.Count(backend.CallSync), "what was written is flushed all the same")
	})
}

// TestNVME_92_StalledHosts: one host does not answer a Read, and one does not read its responses.
func TestNVME_92_StalledHosts(t *testing.T) {
	for name, what := range map[string]capsule.Opcode{"an unanswered Read": capsule.OpWrite, "an unread Write": capsule.OpRead} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				w := newWorld(t, "pipe", nil, nil)
				s := newHost(t, w.addr).connect(1)
				q, err := s.dial(2, 32, func(qc *iwarp.QPConfig) { qc.Setup, qc.RNRWait = nil, iwarp.RNRWaitForever })
				require.NoError(t, err)
				require.NoError(t, q.post(q.qp, 0))
				require.Equal(t, capsule.Success, q.connect(storage, s.cntlid).Status)
				q.send(capsule.FlushSQE(0, 1))
				q.send(capsule.FlushSQE(0, 1)) // from this response on the host reads nothing
				time.Sleep(time.Second)
				p := make([]byte, big)
				sgl := q.writable(p)
				if what == capsule.OpWrite {
					sgl = q.readable(p)
				}
				began := time.Now()
				q.send(rw(what, 0, 255, sgl))
				var worst time.Duration
				for w.target.Stats().Queues == 3 {
					at := time.Now()
					require.Equal(t, capsule.Success, s.io[0].write(600, pattern(lba, 1)).Status)
					worst = max(worst, time.Since(at))
					time.Sleep(time.Second)
				}
				require.InDelta(t, 32, time.Since(began).Seconds(), 3)
				require.Zero(t, worst, "others are as fast as always")
				st := w.settled()
				require.EqualValues(t, 1, st.Stalled)
				require.Zero(t, st.Memory)
			})
		})
	}
}

const otherStorage = "nqn.2026-11.org.example:other"

// TestNVME_78_FlushesOfAnotherSubsystem: neither they nor a shutdown wait for a medium that hangs, however many of its
// flushes do. Hosts that shut down and reset again and again leave one flush.
func TestNVME_78_FlushesOfAnotherSubsystem(t *testing.T) {
	virtual(t, func(t *testing.T) {
		b := fakeOf(t)
		w := newWorld(t, "pipe", nil, b)
		require.NoError(t, w.target.AddNamespace(storage, Namespace{NSID: 2, Backend: fakeOf(t)}))
		require.NoError(t, w.target.AddSubsystem(Subsystem{NQN: otherStorage}))
		free := fakeOf(t)
		require.NoError(t, w.target.AddNamespace(otherStorage, Namespace{NSID: 1, Backend: free}))
		require.NoError(t, w.target.AddNamespace(otherStorage, Namespace{NSID: 2, Backend: fakeOf(t)}))
		open := make(chan struct{})
		release := sync.OnceFunc(func() { close(open) })
		defer release()
		b.Inject(backend.Fault{Call: backend.CallSync, Wait: open})
		s := newHost(t, w.addr).connect(1)
		require.Equal(t, capsule.Success, s.io[0].writeInside(0, pattern(lba, 1)).Status)
		var stuck []uint16
		for range maxWorkers {
			stuck = append(stuck, s.io[0].send(capsule.FlushSQE(0, capsule.BroadcastNSID)))
		}
		resets := newHost(t, w.addr).connect(0)
		for range 100 {
			for _, cc := range []uint64{0x00464001, 0x00460000, 0x00460001} {
				resets.admin.ok(capsule.SetProperty(capsule.PropCC, cc).SQE(0))
			}
		}
		w.settled()
		waiting := 0
		for tk := w.target.flusher(w.queue(0).m.Controller()).waiting.first; tk != nil; tk = tk.next {
			waiting++
		}
		require.Equal(t, 1, waiting)

		h := newHost(t, w.addr)
		h.subsystem = otherStorage
		other := h.connect(1)
		require.Equal(t, capsule.Success, other.io[0].writeInside(0, pattern(lba, 1)).Status)
		flush := other.io[0].send(capsule.FlushSQE(0, capsule.BroadcastNSID))
		w.settled()
		require.Equal(t, 1, free.Count(backend.CallSync))
		require.Equal(t, capsule.Success, other.io[0].wait(flush).Status)
		other.admin.ok(capsule.SetProperty(capsule.PropCC, 0x00464001).SQE(0))
		w.settled()
		csts := other.admin.ok(capsule.GetProperty(capsule.PropCSTS).SQE(0))
		require.Equal(t, capsule.CSTS{SHST: capsule.SHSTComplete}, capsule.ParseCSTS(uint32(csts.Value())))
		release()
		for _, cid := range stuck {
			require.Equal(t, capsule.Success, s.io[0].wait(cid).Status)
		}
	})
}
