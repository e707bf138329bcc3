package setup

import (
	"context"
	"errors"

	"github.com/goiwarp/iwarp/internal/eldest"
	"github.com/goiwarp/iwarp/internal/lockorder"
)

// Why a connection is refused before its Request is complete.
var (
	errSetupTimeout = errors.New("ListenConfig.SetupTimeout is over")
	errNoProgress   = errors.New("nothing has come within ListenConfig.ProgressTimeout")
	errEvicted      = errors.New("given up for a younger connection, since ListenConfig.MaxHalfOpen were being set up")
)

// halfOpen is the connections of a listener that are being set up. A peer that keeps its
// set-up unfinished must not keep others out: where there are too many, the oldest that is
// not complete makes room for the newest.
type halfOpen struct {
	limit  int
	asking eldest.List // those whose Request is not complete

	mu   lockorder.Mutex[lockorder.Leaf]
	n    int
	room chan struct{} // told when n falls
}

func (h *halfOpen) init(limit int) { h.limit, h.room = limit, make(chan struct{}, 1) }

// enter takes a place for a connection that has come. It waits if the application has all
// places. It reports false if ctx ends first. One goroutine at a time may call it.
func (h *halfOpen) enter(ctx context.Context) bool {
	for evicted := false; !h.take(); {
		evicted = evicted || h.asking.GiveUp()
		select {
		case <-h.room:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (h *halfOpen) take() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n >= h.limit {
		return false
	}
	h.n++
	return true
}

// leave gives a place back.
func (h *halfOpen) leave() {
	h.mu.Lock()
	h.n--
	h.mu.Unlock()
	select {
	case h.room <- struct{}{}:
	default:
	}
}
