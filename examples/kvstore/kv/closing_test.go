package kv

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// failures counts the errors in a log.
type failures struct {
	slog.Handler
	mu  sync.Mutex
	all []string
}

func (f *failures) Handle(_ context.Context, r slog.Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.Attrs(func(a slog.Attr) bool {
		f.all = append(f.all, r.Message+": "+a.String())
		return true
	})
	return nil
}

// TestCloseIsNoFailure: not even if Close interrupts a sync of the replica's log.
func TestCloseIsNoFailure(t *testing.T) {
	for range 5 {
		log := &failures{Handler: slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError})}
		w := newWorld(t, "tcp")
		w.startBackup()
		cfg := w.config("primary", 0)
		cfg.Backup, cfg.Logger = w.addrs[1], slog.New(log)
		var err error
		w.primary, err = Open(w.context(), cfg)
		require.NoError(t, err)
		w.settle()
		some := make(chan struct{}, 1)
		for i := range 200 {
			c := change{tenant: w.primary.tables[mustRegion(t, "alpha")].id, key: fmt.Appendf(nil, "key %d", i%8), value: make([]byte, 40_000)}
			_ = w.primary.writer.submit(w.primary.tables[c.tenant], c, func(error) {
				select {
				case some <- struct{}{}:
				default:
				}
			})
		}
		<-some
		require.NoError(t, w.primary.Close())
		require.Empty(t, log.all)
		require.NoError(t, w.primary.Err())
		w.kill(w.backup)
	}
}

func mustRegion(t *testing.T, tenant string) uint64 {
	id, err := RegionOf(tenant)
	require.NoError(t, err)
	return id
}
