package rmaperf

import (
	"errors"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/rma"
)

// A held is a Buffer whose accesses can be made to wait.
type held struct {
	*rma.Memory

	entered chan struct{} // holds a token when an access waits

	mu   sync.Mutex
	free chan struct{} // closed when accesses go on
}

func newHeld(m *rma.Memory) *held {
	h := &held{Memory: m, entered: make(chan struct{}, 1), free: make(chan struct{})}
	close(h.free)
	return h
}

// hold makes accesses wait from now on.
func (h *held) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.free:
		h.free = make(chan struct{})
	default: // they do
	}
}

// release lets accesses go on.
func (h *held) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.free:
	default:
		close(h.free)
	}
	select {
	case <-h.entered:
	default:
	}
}

// wait returns when an access waits.
func (h *held) wait() error {
	select {
	case <-h.entered:
		return nil
	case <-time.After(peer.Timeout):
		return errors.New("no access to the region has come")
	}
}

// pass waits until accesses go on.
func (h *held) pass() {
	h.mu.Lock()
	free := h.free
	h.mu.Unlock()
	select {
	case <-free:
		return
	default:
	}
	select {
	case h.entered <- struct{}{}:
	default:
	}
	<-free
}

// ReadAt reads octets.
func (h *held) ReadAt(p []byte, off int64) (int, error) {
	h.pass()
	return h.Memory.ReadAt(p, off)
}

// WriteAt writes octets.
func (h *held) WriteAt(p []byte, off int64) (int, error) {
	h.pass()
	return h.Memory.WriteAt(p, off)
}
