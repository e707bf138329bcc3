//go:build linux && !purego

package iwarp

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/stag"
)

// A gate is a Flusher that waits for its test, and knows who waits there.
type gate struct {
	open    func()
	opened  chan struct{}
	entered chan bool // true: the reader itself
}

func newGate(t *testing.T) *gate {
	g := &gate{opened: make(chan struct{}), entered: make(chan bool, 64)}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	t.Cleanup(g.open)
	return g
}

func (g *gate) Flush(context.Context, int64, int64) error {
	g.entered <- calledBy("goOnErrand")
	<-g.opened
	return nil
}

func calledBy(function string) bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "."+function) {
			return true
		}
		if !more {
			return false
		}
	}
}

// commits has the client begin a Commit of mr; the error tells when it has ended.
func (s *side) commits(mr *MR) chan error {
	ended := make(chan error, 1)
	go func() { ended <- s.qp.Commit(testContext(s.T), mr.Advertise(0, 8)) }()
	return ended
}

func TestCMT_25_NothingWaitsForTheDiskButTheCommit(t *testing.T) {
	client, server := committers(t)
	g := newGate(t)
	mem, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite, &MROptions{Durable: g})
	src, local := client.register(64, stag.LocalWrite, nil)
	copy(src, "behind")
	committed := client.commits(mr)
	require.True(t, <-g.entered, "an idle reader goes to the disk itself")

	ctx, cancel := context.WithTimeout(testContext(t), 2*time.Second)
	defer cancel()
	require.NoError(t, server.qp.PostRecv(RecvWR{}))
	require.NoError(t, client.qp.PostSend(
		SendWR{Op: OpRDMAWrite, Flags: Unsignaled, Local: []SGE{local.Slice(0, 6)}, Remote: mr.Advertise(8, 6)},
		SendWR{Op: OpSend, Flags: Unsignaled}))
	n, err := server.qp.RecvCQ().Wait(ctx, make([]WC, 1))
	require.NoError(t, err, "a Send is delivered meanwhile")
	require.Equal(t, 1, n)
	require.Equal(t, "behind", string(mem[8:14]), "and a Write before it is placed")

	second := client.commits(mr)
	require.False(t, <-g.entered, "another Commit has a goroutine of its own")
	g.open()
	require.NoError(t, <-committed)
	require.NoError(t, <-second)
	require.Eventually(t, func() bool { return server.rnic.errands.Load() == 0 }, patience, 100*time.Microsecond)
	require.NoError(t, <-client.commits(mr))
	require.True(t, <-g.entered, "then the reader goes again")
	server.becomes(readerStaying, "and is back where it was")
}

// TestCMT_54_ManyCommitsWaitSideBySide: whoever is at the disk is not in the way of others.
func TestCMT_54_ManyCommitsWaitSideBySide(t *testing.T) {
	client, server := committers(t)
	g := newGate(t)
	_, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite, &MROptions{Durable: g})
	const most = 16 // the IRD
	for range most {
		require.NoError(t, client.qp.PostSend(SendWR{Op: OpCommit, Regions: []RemoteBuffer{mr.Advertise(0, 8)}}))
	}
	ctx, cancel := context.WithTimeout(testContext(t), 2*time.Second)
	defer cancel()
	for range most {
		select {
		case <-g.entered:
		case <-ctx.Done():
			require.Fail(t, "a Commit waits for another")
		}
	}
	g.open()
	for range most {
		one(t, client.qp.SendCQ(), make([]WC, 1))
	}
}

func TestReaderAtTheDiskWhenTheConnectionEnds(t *testing.T) {
	for what, end := range map[string]func(client, server *side){
		"the peer is gone":   func(client, _ *side) { _ = client.qp.Abort() },
		"it was aborted":     func(_, server *side) { _ = server.qp.Abort() },
		"its RNIC is closed": func(_, server *side) { go func() { _ = server.rnic.Close() }() },
	} {
		t.Run(what, func(t *testing.T) {
			client, server := committers(t)
			g := newGate(t)
			_, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite, &MROptions{Durable: g})
			committed := client.commits(mr)
			require.True(t, <-g.entered)
			end(client, server)
			select {
			case <-server.qp.Done():
			case <-testContext(t).Done():
				require.Fail(t, "the QP waits for the disk")
			}
			require.Error(t, <-committed)
			g.open()
			require.NoError(t, server.rnic.Close(), "nobody is left behind")
		})
	}
}

// TestNoCommitIsLostBetweenReaders: somebody wants the right to receive again and again,
// while a reader takes Commits.
func TestNoCommitIsLostBetweenReaders(t *testing.T) {
	client, server := committers(t)
	_, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite, &MROptions{Durable: slow{}})
	ctx := testContext(t)
	over := make(chan struct{})
	var wants sync.WaitGroup
	wants.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			short, cancel := context.WithTimeout(ctx, 50*time.Microsecond)
			_, _ = server.qp.RecvCQ().Wait(short, make([]WC, 1))
			cancel()
		}
	})
	for i := range 500 {
		require.NoError(t, client.qp.Commit(ctx, mr.Advertise(0, 8)), "Commit %d", i)
	}
	close(over)
	wants.Wait()
}

// slow takes as long as a fast disk.
type slow struct{}

func (slow) Flush(context.Context, int64, int64) error {
	time.Sleep(50 * time.Microsecond)
	return nil
}

func TestWhoWaitsForMessagesDoesNotGoToTheDisk(t *testing.T) {
	client, server := committers(t)
	g := newGate(t)
	_, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite, &MROptions{Durable: g})
	ctx := testContext(t)
	require.NoError(t, server.qp.PostRecv(RecvWR{}))
	require.NoError(t, client.qp.RDMARead(ctx, SGE{}, RemoteBuffer{}), "what the connection began with is done, and the client does not knock")
	server.becomes(readerArmed, "the reader that began has left, and nothing comes")
	var waits sync.WaitGroup
	waits.Go(func() { _, _ = server.qp.RecvCQ().Wait(ctx, make([]WC, 1)) })
	server.becomes(readerHeld, "somebody waits, and receives")
	committed := client.commits(mr)
	require.False(t, <-g.entered, "his message may come any time")
	require.NoError(t, client.qp.PostSend(SendWR{Op: OpSend, Flags: Unsignaled}))
	waits.Wait()
	g.open()
	require.NoError(t, <-committed)
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

// TestClosedRNICSyncsNothingMore: not even for one of whom only the group's own goroutine
// knows. Who closes an RNIC may then take his file away.
func TestClosedRNICSyncsNothingMore(t *testing.T) {
	client, server := committers(t)
	g := &gated{gate: newGate(t)}
	b, err := commit.NewBuffer(g)
	require.NoError(t, err)
	mr, err := server.pd.RegisterBuffer(b, stag.LocalWrite|stag.RemoteWrite, &MROptions{Durable: b})
	require.NoError(t, err)
	write := func() {
		_, err := b.WriteAt(make([]byte, 64), 0)
		require.NoError(t, err)
	}
	write()
	first := client.commits(mr)
	<-g.entered
	write()
	second := client.commits(mr)
	require.Eventually(t, func() bool { return server.qp.Stats().Received.CommitRequest.Messages == 2 }, patience, time.Millisecond)

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
	require.Equal(t, syncs, b.Syncs(), "nobody wants another")
}
