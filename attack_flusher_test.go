package iwarp_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/commit"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// A lockedLog is a log that goroutines of the library write to.
type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A panicFlusher is a Flusher that panics.
type panicFlusher struct{}

func (panicFlusher) Flush(context.Context, int64, int64) error {
	panic(errors.New("index out of range"))
}

// A panicDisk is a buffer whose Sync panics.
type panicDisk struct{ badDisk }

func (*panicDisk) Sync() error { panic(errors.New("index out of range")) }

// TestAttackFlusherThatPanics: the peer is told that the octets are not durable, the log has the stack, and neither the
// process nor the stream ends.
func TestAttackFlusherThatPanics(t *testing.T) {
	for name, x := range map[string]struct {
		register func(s *side) *iwarp.MR
		is       error
	}{
		"Flusher": {func(s *side) *iwarp.MR {
			_, mr := s.register(64, stag.LocalWrite|stag.Remote, &iwarp.MROptions{Durable: panicFlusher{}})
			return mr
		}, commit.ErrDataLost},
		"Flusher, written through": {func(s *side) *iwarp.MR {
			_, mr := s.register(64, stag.LocalWrite|stag.Remote, &iwarp.MROptions{Durable: panicFlusher{}, WriteThrough: true})
			return mr
		}, commit.ErrDataLost},
		"Sync": {func(s *side) *iwarp.MR {
			b, err := commit.NewBuffer(&panicDisk{})
			require.NoError(s, err)
			mr, err := s.pd.RegisterBuffer(b, stag.LocalWrite|stag.Remote, &iwarp.MROptions{Durable: b})
			require.NoError(s, err)
			return mr
		}, commit.ErrDataLost},
		"Integrity": {func(s *side) *iwarp.MR {
			_, mr := s.register(64, stag.LocalWrite|stag.Remote, &iwarp.MROptions{
				Durable: &medium{}, Integrity: func(int64, int64) error { panic("index out of range") },
			})
			return mr
		}, commit.ErrIntegrity},
	} {
		t.Run(name, func(t *testing.T) {
			var log lockedLog
			client, server := newSide(t, nil), newSide(t, &iwarp.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			qc := iwarp.QPConfig{Commit: &iwarp.CommitOptions{Negotiate: true}}
			client.connect(server, pairConfig{client: qc, server: qc})
			mr, ctx := x.register(server), testContext(t)
			src, local := client.register(8, stag.LocalWrite, nil)
			copy(src, "octets")
			for range 3 {
				require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(0, 8), local.Slice(0, 8)))
				require.ErrorIs(t, client.qp.Commit(ctx, mr.Advertise(0, 8)), x.is)
			}
			if !strings.Contains(name, "through") { // else a Commit is told by the memory of the Latch
				require.Contains(t, log.String(), "index out of range")
				require.Contains(t, log.String(), "attack_flusher_test.go", "it tells where")
			}
			require.Equal(t, iwarp.StateRTS, client.qp.State(), "the stream goes on")
			require.NoError(t, mr.Close())
		})
	}
}

// TestAttackFlusherThatPanicsAsItIsTold what a peer has written, or could not write: that peer's QP ends, and the log
// contains the stack; neither the process nor another QP ends.
func TestAttackFlusherThatPanicsAsItIsTold(t *testing.T) {
	for _, method := range []string{"Touched", "Failed"} {
		t.Run(method, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var log lockedLog
				k := newTalk(t, iwarp.QPConfig{}, &iwarp.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				other := newTalk(t, iwarp.QPConfig{}, nil)
				mr := insides[method](k, func() { panic(errors.New("index out of range")) })
				k.p.Send(wiretest.Write(mr.STag(), 0, "octets"))
				k.wantTerminate("a local catastrophe", 0x1000)
				require.ErrorContains(t, k.qp.Err(), "the Flusher's "+method+" panicked: index out of range")
				require.Contains(t, log.String(), "attack_flusher_test.go", "it tells where")
				require.NoError(t, mr.Close())
				require.Equal(t, iwarp.StateRTS, other.qp.State())
				require.NoError(t, other.qp.Abort())
			})
		})
	}
}

// TestAttackFlusherThatEndsItsGoroutine: the peer is told that the octets are lost, and the region can be closed.
func TestAttackFlusherThatEndsItsGoroutine(t *testing.T) {
	client, server := newSide(t, nil), newSide(t, nil)
	qc := iwarp.QPConfig{Commit: &iwarp.CommitOptions{Negotiate: true}}
	client.connect(server, pairConfig{client: qc, server: qc})
	_, mr := server.register(64, stag.LocalWrite|stag.Remote, &iwarp.MROptions{Durable: goexitFlusher{}})
	for range 2 {
		require.ErrorIs(t, client.qp.Commit(testContext(t), mr.Advertise(0, 8)), commit.ErrDataLost)
	}
	require.NoError(t, mr.Close())
}

// A goexitFlusher is a Flusher that does not return.
type goexitFlusher struct{}

func (goexitFlusher) Flush(context.Context, int64, int64) error {
	runtime.Goexit()
	return nil
}
