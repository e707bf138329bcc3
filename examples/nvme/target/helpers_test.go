package target

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp/examples/nvme/backend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world is a target with a namespace, on a pipe or on TCP.
type world struct {
	t      testing.TB
	target *Target
	addr   string
	b      backend.Backend
}

// memoryOf makes the usual back end.
func memoryOf(t testing.TB, size int64) backend.Backend {
	b, err := backend.NewMemory(backend.MemoryConfig{Size: size, BlockSize: lba})
	require.NoError(t, err)
	return b
}

const diskSize = 64 << 20

// fakeOf is a back end that can lose power.
func fakeOf(t testing.TB) *backend.Fake {
	t.Helper()
	b, err := backend.NewFake(backend.FakeConfig{Size: diskSize, BlockSize: lba})
	require.NoError(t, err)
	return b
}

// newWorld makes a target whose namespace 1 is b; nil: memory.
func newWorld(t testing.TB, net string, cfg *Config, b backend.Backend) *world {
	t.Helper()
	if b == nil {
		b = memoryOf(t, diskSize)
	}
	tg, err := New(cfg)
	require.NoError(t, err)
	require.NoError(t, tg.AddSubsystem(Subsystem{NQN: storage}))
	require.NoError(t, tg.AddNamespace(storage, Namespace{NSID: 1, Backend: b}))
	at := ""
	if net == "tcp" {
		at = "127.0.0.1:0"
	}
	l, err := tg.Listen(context.Background(), net, at)
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = tg.Serve(context.Background(), l)
	}()
	w := &world{t: t, target: tg, addr: l.Addr().String(), b: b}
	t.Cleanup(func() {
		require.NoError(t, tg.Close())
		<-served
		require.NoError(t, l.Close())
		s := tg.Stats()
		require.Zero(t, s.Memory, "octets of buffers")
		require.Zero(t, s.Running, "commands")
		require.Zero(t, s.Queues)
		require.NoError(t, w.b.Close())
	})
	return w
}

// settled returns the counters when no more work is in progress, in virtual time. A host sees a response, or the end of
// a connection, before the target has given back what belonged to it.
func (w *world) settled() Stats {
	time.Sleep(time.Second)
	synctest.Wait()
	return w.target.Stats()
}

// virtual runs a test in virtual time.
func virtual(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
