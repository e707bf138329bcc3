package nvmecut

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/target"
)

func area(l *ledger, versions ...uint64) []byte {
	b := make([]byte, len(l.durable)*BlockSize)
	for i, v := range versions {
		if v != 0 {
			l.put(b[i*BlockSize:][:BlockSize], i, v)
		}
	}
	return b
}

// TestLedger: after a cut, an LBA has its last durable version, or a version sent after it.
func TestLedger(t *testing.T) {
	for _, c := range []struct {
		name string
		have uint64 // version after the cut
		lost int
	}{
		{"never written", 0, 1},
		{"before the durable one", 1, 1},
		{"the durable one", 2, 0},
		{"sent later", 3, 0},
		{"sent last", 4, 0},
		{"never sent", 5, 1},
	} {
		l := newLedger(64, 1)
		for range 2 {
			l.begin(0)
		}
		l.acknowledge(0, 2)
		l.begin(0)
		l.begin(0)
		l.check(area(l, c.have))
		require.Equal(t, c.lost, l.lost, c.name)
		require.Len(t, l.news, c.lost, c.name)
		l.check(area(l, c.have))
		require.Equal(t, c.lost, l.lost, "%s: it counts once, and what is there stays", c.name)
	}
}

func TestLedgerFindsTornBlocks(t *testing.T) {
	l := newLedger(0, 2)
	l.begin(0)
	l.begin(0)
	torn := area(l, 1)
	copy(torn[256:], area(l, 2)[256:512])
	l.check(torn)
	require.Equal(t, 1, l.lost, "half of one version and half of another")

	l = newLedger(0, 2)
	l.begin(1)
	l.acknowledge(1, 1)
	l.check(append(area(l, 0)[:512], area(l, 1)[:512]...))
	require.Equal(t, 1, l.lost, "the contents of another LBA")
}

// TestHostFindsWhatAFlushLeavesOut: a target whose medium forgets flushed data is detected, and another target is not.
func TestHostFindsWhatAFlushLeavesOut(t *testing.T) {
	for _, forgetful := range []bool{false, true} {
		f, err := backend.NewFake(backend.FakeConfig{Size: Size, BlockSize: BlockSize, Forgetful: forgetful})
		require.NoError(t, err)
		h := NewHost(1)
		live(t, h, f, true)
		again, err := f.Crash(1, false)
		require.NoError(t, err)
		live(t, h, again, false)
		acknowledged, lost := h.Records()
		require.Positive(t, acknowledged)
		require.Equal(t, forgetful, lost > 0, "%d of %d are lost", lost, acknowledged)
		require.NoError(t, again.Close())
	}
}

// live runs one life of a target: the host meets it, and writes some commands until the target is gone.
func live(t *testing.T, h *Host, b backend.Backend, write bool) {
	tg, err := target.New(nil)
	require.NoError(t, err)
	require.NoError(t, tg.AddSubsystem(target.Subsystem{NQN: SubNQN}))
	require.NoError(t, tg.AddNamespace(SubNQN, target.Namespace{NSID: 1, Backend: b}))
	l, err := tg.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = tg.Serve(t.Context(), l) // its end is the end of the target
	}()
	require.NoError(t, h.Meet(t.Context(), l.Addr().String()))
	if write {
		ran := make(chan error, 1)
		go func() { ran <- h.Run(context.Background()) }()
		require.Eventually(t, func() bool { return tg.Stats().Commands > 300 }, 20*time.Second, time.Millisecond)
		require.NoError(t, tg.Close())
		require.NoError(t, <-ran)
	}
	h.Part()
	_ = tg.Close()
	<-served
}
