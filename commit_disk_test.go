package iwarp_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// A gate is a Flusher whose Flush waits until the test opens it.
type gate struct {
	open    func()
	opened  chan struct{}
	entered chan struct{} // one for each Flush
}

func newGate(t *testing.T) *gate {
	g := &gate{opened: make(chan struct{}), entered: make(chan struct{}, 64)}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	t.Cleanup(g.open)
	return g
}

func (g *gate) Flush(context.Context, int64, int64) error {
	g.entered <- struct{}{}
	<-g.opened
	return nil
}

// flushes waits for a Flush to begin.
func (g *gate) flushes(t *testing.T, expectation string) {
	t.Helper()
	select {
	case <-g.entered:
	case <-time.After(wiretest.Patience):
		require.Fail(t, "no Flush begins", expectation)
	}
}

// commits makes the client begin a Commit of mr, and returns a channel for its result.
func (s *side) commits(mr *iwarp.MR) chan error {
	ended := make(chan error, 1)
	go func() { ended <- s.qp.Commit(testContext(s.T), mr.Advertise(0, 8)) }()
	return ended
}

// TestCMT_25_NothingWaitsForTheDiskButTheCommit: whether a reader receives or a goroutine
// that waits for a completion.
func TestCMT_25_NothingWaitsForTheDiskButTheCommit(t *testing.T) {
	for what, waits := range map[string]bool{"a reader receives": false, "a waiter receives": true} {
		t.Run(what, func(t *testing.T) {
			client, server := committers(t)
			g := newGate(t)
			mem, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: g})
			src, local := client.register(64, stag.LocalWrite, nil)
			copy(src, "behind")
			require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{}))
			received := make(chan error, 1)
			wait := func() {
				_, err := server.qp.RecvCQ().Wait(testContext(t), make([]iwarp.WC, 1))
				received <- err
			}
			if waits {
				go wait()
			}
			first := client.commits(mr)
			g.flushes(t, "for the first Commit")
			require.NoError(t, client.qp.PostSend(
				iwarp.SendWR{Op: iwarp.OpRDMAWrite, Flags: iwarp.Unsignaled, Local: []iwarp.SGE{local.Slice(0, 6)}, Remote: mr.Advertise(8, 6)},
				iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled}))
			if !waits {
				go wait()
			}
			select {
			case err := <-received:
				require.NoError(t, err, "a Send is delivered meanwhile")
			case <-time.After(wiretest.Patience):
				require.Fail(t, "a Send waits for the disk")
			}
			require.Equal(t, "behind", string(mem[8:14]), "and a Write before it is placed")
			second := client.commits(mr)
			g.flushes(t, "for a second Commit")
			g.open()
			require.NoError(t, <-first)
			require.NoError(t, <-second)
		})
	}
}

// TestCMT_54_ManyCommitsWaitSideBySide: a Flush that waits does not delay others.
func TestCMT_54_ManyCommitsWaitSideBySide(t *testing.T) {
	client, server := committers(t)
	g := newGate(t)
	_, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: g})
	const most = 16 // the IRD
	for range most {
		require.NoError(t, client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpCommit, Regions: []iwarp.RemoteBuffer{mr.Advertise(0, 8)}}))
	}
	for range most {
		g.flushes(t, "for each Commit")
	}
	g.open()
	for range most {
		one(t, client.qp.SendCQ(), make([]iwarp.WC, 1))
	}
}

func TestConnectionEndsWhileACommitWaitsForTheDisk(t *testing.T) {
	for what, end := range map[string]func(client, server *side){
		"the peer is gone":   func(client, _ *side) { _ = client.qp.Abort() },
		"it was aborted":     func(_, server *side) { _ = server.qp.Abort() },
		"its RNIC is closed": func(_, server *side) { go func() { _ = server.rnic.Close() }() },
	} {
		t.Run(what, func(t *testing.T) {
			client, server := committers(t)
			g := newGate(t)
			_, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: g})
			committed := client.commits(mr)
			g.flushes(t, "for the Commit")
			end(client, server)
			select {
			case <-server.qp.Done():
			case <-testContext(t).Done():
				require.Fail(t, "the QP waits for the disk")
			}
			require.Error(t, <-committed)
			g.open()
			require.NoError(t, server.rnic.Close(), "no goroutine is left behind")
		})
	}
}

// gated is a buffer whose syncs wait.
type gated struct {
	*gate
	mem [64]byte
}

func (g *gated) Size() int64                              { return int64(len(g.mem)) }
func (g *gated) ReadAt(p []byte, off int64) (int, error)  { return copy(p, g.mem[off:]), nil }
func (g *gated) WriteAt(p []byte, off int64) (int, error) { return copy(g.mem[off:], p), nil }
func (g *gated) Sync() error                              { return g.Flush(context.Background(), 0, 0) }

// TestClosedRNICSyncsNothingMore: not even for a Commit of which only the backing's goroutine
// knows. The application may close the file when RNIC.Close has returned.
func TestClosedRNICSyncsNothingMore(t *testing.T) {
	client, server := committers(t)
	g := &gated{gate: newGate(t)}
	b, err := commit.NewBuffer(g)
	require.NoError(t, err)
	mr, err := server.pd.RegisterBuffer(b, stag.LocalWrite|stag.RemoteWrite, &iwarp.MROptions{Durable: b})
	require.NoError(t, err)
	write := func() {
		_, err := b.WriteAt(make([]byte, 64), 0)
		require.NoError(t, err)
	}
	write()
	first := client.commits(mr)
	g.flushes(t, "for the first Commit")
	write()
	second := client.commits(mr)
	require.Eventually(t, func() bool { return server.qp.Stats().Received.CommitRequest.Messages == 2 }, wiretest.Patience, time.Millisecond)

	closed := make(chan error, 1)
	go func() { closed <- server.rnic.Close() }()
	require.Error(t, <-first)
	require.Error(t, <-second)
	select {
	case err := <-closed:
		require.Fail(t, "a sync is under way", "Close: %v", err)
	case <-time.After(5 * time.Millisecond):
	}
	g.open()
	require.NoError(t, <-closed)
	syncs := b.Syncs()
	time.Sleep(5 * time.Millisecond)
	require.Equal(t, syncs, b.Syncs(), "no Commit needs another")
}
