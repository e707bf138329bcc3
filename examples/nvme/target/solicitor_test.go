package target

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	nvme "github.com/goiwarp/iwarp/examples/nvme/host"
	"github.com/goiwarp/iwarp/solicit"
)

// TestNVME_81_Window: four hosts write at the same time, and one of them disappears. No more than the window is
// requested, and the lost queue's share of it is given back.
func TestNVME_81_Window(t *testing.T) {
	virtual(t, func(t *testing.T) {
		window := iwarp.NewSolicitor(solicit.Config{Fixed: 1 << 20})
		w := newWorld(t, "pipe", &Config{Solicitor: window}, nil)
		p := pattern(64*lba, 1)
		all(4, func(i int) {
			h := newHost(t, w.addr)
			h.nqn += string(rune('a' + i))
			q := h.connect(1).io[0]
			sgl := kept(q.readable(p))
			for k := range 64 {
				q.send(rw(capsule.OpWrite, uint64(64*(4*i+k%4)), 64, sgl))
			}
			if i == 3 {
				_ = q.qp.Abort()
				return
			}
			for range 64 {
				if a, err := q.next(); err != nil || !a.Status.OK() {
					t.Error(i, err, a.Status)
					return
				}
			}
		})
		time.Sleep(time.Second)
		st := window.Stats()
		require.LessOrEqual(t, st.MaxGranted, int64(1<<20))
		require.Greater(t, st.MaxGranted, int64(512<<10), "the queues share it")
		require.Zero(t, st.Granted)
		require.Zero(t, st.Queued)
		require.Positive(t, st.Grants[solicit.Bulk])
		require.Positive(t, st.Grants[solicit.Latency], "the data of Connect")
		require.GreaterOrEqual(t, w.target.Stats().Fetched, uint64(3*64*64*lba), "nothing came in capsules")
	})
}

// TestNVME_81_NothingInCapsules: all data of writes is requested.
func TestNVME_81_NothingInCapsules(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", &Config{Solicitor: iwarp.NewSolicitor(solicit.Config{Fixed: 1 << 20}), InCapsule: 8192}, nil)
		s := newHost(t, w.addr).connect(0)
		page := make([]byte, 4096)
		s.admin.ok(capsule.Identify{CNS: capsule.CNSController}.SQE(0, s.admin.writable(page)))
		id, err := capsule.ParseIdentifyController(page)
		require.NoError(t, err)
		require.EqualValues(t, 4, id.IOCCSZ)
	})
}

// TestNVME_82_DispatchLimit: a write that the window does not admit for 5 s is answered with 0x022, and succeeds later.
func TestNVME_82_DispatchLimit(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", &Config{Solicitor: dispatchWindow(5 * time.Second)}, nil)
		s := newHost(t, w.addr).connect(1)
		s.occupyWindow()
		began := time.Now()
		p := pattern(2*lba, 1)
		a := s.io[0].write(300, p)
		require.Equal(t, capsule.StatusBusy, a.Status)
		require.False(t, a.Status.DNR())
		require.InDelta(t, 5, time.Since(began).Seconds(), 0.001)
		require.EqualValues(t, 1, w.target.Stats().Busy)
		for w.target.Stats().Queues == 3 { // until the slow one is closed
			time.Sleep(time.Second)
		}
		require.Equal(t, capsule.Success, s.io[0].write(300, p).Status)
	})
}

// dispatchWindow returns a window of 1 MiB, for which an operation waits up to d.
func dispatchWindow(d time.Duration) *iwarp.Solicitor {
	return iwarp.NewSolicitor(solicit.Config{Fixed: 1 << 20, Dispatch: [2]time.Duration{d, d}})
}

// occupyWindow makes queue 2, which has nearly all of the window until it is closed. On it, the host reads nothing after
// the response to its first Flush, and so answers no RDMA Read.
func (s *session) occupyWindow() {
	slow, err := s.dial(2, 32, func(qc *iwarp.QPConfig) { qc.Setup, qc.RNRWait = nil, iwarp.RNRWaitForever })
	require.NoError(s.t, err)
	require.NoError(s.t, slow.post(slow.qp, 0))
	require.Equal(s.t, capsule.Success, slow.connect(storage, s.cntlid).Status)
	slow.send(capsule.FlushSQE(0, 1))
	slow.send(capsule.FlushSQE(0, 1))
	time.Sleep(time.Second)
	slow.send(rw(capsule.OpWrite, 0, 255, slow.readable(pattern(big, 1))))
	time.Sleep(time.Second)
}

// TestNVME_82_OurHostTriesAgain: as often as it may, and it succeeds when the window is free again.
func TestNVME_82_OurHostTriesAgain(t *testing.T) {
	for retries, wanted := range map[int]error{0: nil, 2: capsule.StatusError{Status: capsule.StatusBusy}, -1: capsule.StatusError{Status: capsule.StatusBusy}} {
		virtual(t, func(t *testing.T) {
			w := newWorld(t, "pipe", &Config{Solicitor: dispatchWindow(7 * time.Second)}, nil)
			_, n := w.attach(nvme.Options{Retries: retries, IOTimeout: time.Minute})
			newHost(t, w.addr).connect(1).occupyWindow()
			p, got := pattern(2*lba, 1), make([]byte, 2*lba)
			_, err := n.WriteAt(p, 0)
			if wanted == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, wanted)
			}
			busy := map[int]uint64{0: 4, 2: 3, -1: 1}[retries]
			require.Equal(t, busy, w.settled().Busy)
			for w.target.Stats().Stalled == 0 {
				time.Sleep(time.Second)
			}
			_, err = n.WriteAt(p, 0)
			require.NoError(t, err)
			_, err = n.ReadAt(got, 0)
			require.NoError(t, err)
			require.Equal(t, p, got)
		})
	}
}

// TestNVME_81_WindowTooSmall: a Read that never fits is an error of its command only.
func TestNVME_81_WindowTooSmall(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", &Config{Solicitor: iwarp.NewSolicitor(solicit.Config{Fixed: 64 << 10})}, nil)
		q := newHost(t, w.addr).connect(1).io[0]
		require.Equal(t, capsule.StatusInternalError, q.write(0, pattern(big, 1)).Status)
		require.Equal(t, capsule.Success, q.write(0, pattern(lba, 1)).Status)
	})
}
