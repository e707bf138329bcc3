package rdmap

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/goiwarp/iwarp/internal/raceorder"
)

// done returns a context that is over.
func done(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

var errBroken = errors.New("scripted failure")

// A brokenBuffer is a stag.Buffer that can be written only.
type brokenBuffer struct{ size int64 }

func (b *brokenBuffer) Size() int64                            { return b.size }
func (b *brokenBuffer) ReadAt([]byte, int64) (int, error)      { return 0, errBroken }
func (b *brokenBuffer) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// Outstanding returns how many requests await the peer's response; at most the ORD.
func (s *Stream) Outstanding() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orq.len()
}

func itoa(i int) string { return strconv.Itoa(i) }

// skipUnderRace skips a test whose result the race detector changes.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
}
