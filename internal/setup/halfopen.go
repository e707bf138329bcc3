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

// halfOpen counts the connections of a listener that are being set up. A peer that leaves its
// set-up unfinished must not keep others out: if there are too many connections, the oldest one
// whose Request is not complete is closed to make room for the newest.
type halfOpen struct {
	limit  int
	asking eldest.List // connections whose Request is not complete

	mu   lockorder.Mutex[lockorder.Leaf]
	n    int
	room chan struct{} // receives a value when n falls
}

func (h *halfOpen) init(limit int) { h.limit, h.room = limit, make(chan struct{}, 1) }

// enter takes a place for a new connection. If complete Requests occupy all places, it waits for
// the application. It reports false if ctx ends first. One goroutine at a time may call it.
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
