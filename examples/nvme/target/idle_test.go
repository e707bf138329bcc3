package target

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// TestNVME_89_IdleMemory: the memory that queues and the process keep for later is bounded, and may be nothing.
func TestNVME_89_IdleMemory(t *testing.T) {
	for most, want := range map[int][2]int64{
		-1:       {0, 0},
		64 << 10: {48 << 10, 64 << 10}, // then some is free for other queues, too
		8 << 20:  {3 * 256 << 10, 8 << 20},
	} {
		virtual(t, func(t *testing.T) {
			w := newWorld(t, "pipe", &Config{Limits: Limits{Idle: most}}, nil)
			s := newHost(t, w.addr).connect(3)
			for range 2 {
				for _, q := range s.io {
					sgl := q.writable(make([]byte, big))
					for i := range 100 {
						n := 1 + i%2*7
						q.send(rw(capsule.OpRead, 0, n, capsule.KeyedSGL(sgl.Key(), sgl.Address(), uint32(n*lba), false)))
					}
					q.send(rw(capsule.OpRead, 0, 255, kept(sgl)))
					for range 101 {
						a, err := q.next()
						require.NoError(t, err)
						require.Equal(t, capsule.Success, a.Status)
					}
				}
			}
			st := w.settled()
			require.Zero(t, st.Memory)
			require.GreaterOrEqual(t, st.Idle, want[0])
			require.LessOrEqual(t, st.Idle, want[1])
			require.NoError(t, s.admin.qp.Abort())
			st = w.settled()
			require.Zero(t, st.Queues)
			require.LessOrEqual(t, st.Idle, want[1]/4, "nothing is registered any more")
			require.Zero(t, w.target.memory.kept.Load())
		})
	}
}

// TestNVME_85_RemovedNamespace: RemoveNamespace does not wait. Commands that the back end has begun end with it.
// Commands that it has not begun when it is closed are answered.
func TestNVME_85_RemovedNamespace(t *testing.T) {
	virtual(t, func(t *testing.T) {
		b, open := blocked(t, 1)
		w := newWorld(t, "pipe", &Config{Limits: Limits{Workers: 1}}, b)
		q := newHost(t, w.addr).connect(1).io[0]
		p := pattern(lba, 1)
		running := q.send(rw(capsule.OpWrite, 1, 1, q.readable(p)))
		waiting := q.send(rw(capsule.OpWrite, 2, 1, q.readable(p)))
		require.Equal(t, 2, w.settled().Running)
		require.NoError(t, w.target.RemoveNamespace(storage, 1))
		require.Equal(t, capsule.StatusInvalidNamespace, q.read(1, p).Status)
		closed := make(chan error, 1)
		go func() { closed <- b.Close() }()
		w.b = memoryOf(t, diskSize) // for the cleanup
		time.Sleep(time.Second)
		require.Empty(t, closed, "the back end is at work")
		close(open)
		require.Equal(t, capsule.Success, q.wait(running).Status)
		require.Equal(t, capsule.StatusInternalError, q.wait(waiting).Status)
		require.NoError(t, <-closed)
	})
}

// TestNVME_85_NothingIsLeftOfRemovedNamespaces: however many were removed.
func TestNVME_85_NothingIsLeftOfRemovedNamespaces(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		q := newHost(t, w.addr).connect(1).io[0]
		b, err := backend.NewMemory(backend.MemoryConfig{Size: 1 << 20})
		require.NoError(t, err)
		for range 20 {
			require.NoError(t, w.target.AddNamespace(storage, Namespace{NSID: 2, Backend: b}))
			write := capsule.RW{Opcode: capsule.OpWrite, NSID: 2}
			q.ok(write.SQE(0, q.readable(pattern(lba, 1))))
			require.NoError(t, w.target.RemoveNamespace(storage, 2))
			w.settled()
		}
		require.LessOrEqual(t, len(w.target.pools), 3)
		require.NoError(t, b.Close())
	})
}
