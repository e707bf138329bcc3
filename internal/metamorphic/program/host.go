package program

import (
	"context"
	"fmt"
	"sync"

	"github.com/goiwarp/iwarp"
)

// A Host is an RNIC that many programs use, one after another and concurrently.
type Host struct {
	RNIC *iwarp.RNIC

	mu      sync.Mutex
	events  map[*iwarp.QP][]iwarp.Event
	changed chan struct{} // closed when there are more
	all     sync.WaitGroup
}

// NewHost opens an RNIC. It reads its events.
func NewHost(cfg *iwarp.Config) (*Host, error) {
	c := *cfg
	c.CloseTimeout = longWait
	rnic, err := iwarp.Open(&c)
	if err != nil {
		return nil, err
	}
	h := &Host{RNIC: rnic, events: make(map[*iwarp.QP][]iwarp.Event), changed: make(chan struct{})}
	events := rnic.Events()
	h.all.Go(func() {
		for ev := range events {
			h.add(ev)
		}
	})
	return h, nil
}

func (h *Host) add(ev iwarp.Event) {
	if ev.QP == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events[ev.QP] = append(h.events[ev.QP], ev)
	close(h.changed)
	h.changed = make(chan struct{})
}

// Take waits for the event that reports the end of a queue pair, and takes all events of the queue pair.
func (h *Host) Take(ctx context.Context, qp *iwarp.QP) ([]iwarp.Event, error) {
	for {
		h.mu.Lock()
		all, changed := h.events[qp], h.changed
		_, err := theEvent(all)
		if err == nil {
			delete(h.events, qp)
		}
		h.mu.Unlock()
		if err == nil {
			return all, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("the end of a queue pair has no event, or several: %w", err)
		}
	}
}

// Close closes the RNIC. It returns an error if there are events that no program has expected, or that were dropped.
func (h *Host) Close() error {
	err := h.RNIC.Close()
	h.all.Wait()
	n, dropped := 0, h.RNIC.EventsDropped()
	for _, all := range h.events {
		n += len(all)
	}
	if err == nil && n+int(dropped) > 0 {
		err = fmt.Errorf("%d events that no program has expected, and %d dropped", n, dropped)
	}
	return err
}

// collectShared takes the events of the program's queue pairs.
func (x *run) collectShared(h *host) error {
	for end, e := range x.ends {
		if x.hosts[end.Side] != h {
			continue
		}
		var err error
		if e.events, err = h.shared.Take(x.ctx, e.qp); err != nil {
			return fmt.Errorf("%v: %w", e.End, err)
		}
	}
	return nil
}
