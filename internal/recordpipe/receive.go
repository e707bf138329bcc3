package recordpipe

import (
	"errors"
	"io"

	"github.com/goiwarp/iwarp/transport"
)

func (e *end) Receive(pl transport.Placer, wait transport.Wait) error {
	for {
		some, err := e.deliver(pl)
		switch {
		case err != nil || some:
			return err
		case wait == transport.NoWait:
			return transport.ErrAgain
		}
		if err := e.park(); err != nil {
			return err
		}
	}
}

// deliver hands up the segments that have arrived, at most as many as one read allows.
func (e *end) deliver(pl transport.Placer) (some bool, err error) {
	for range e.pipe.options.Read {
		r, err := e.take()
		if err != nil {
			return some, err
		}
		if r == nil {
			return some, nil
		}
		if err := pl.Segment(r.seq, r.data); err != nil {
			e.refuse(r, err)
			return some, err
		}
		e.accept(r)
		some = true
	}
	return some, nil
}

// take returns the next record, nil if none has arrived.
func (e *end) take() (*record, error) {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := e.failure("read"); err != nil {
		return nil, err
	}
	if e.refused != nil {
		return nil, e.refused
	}
	if r := e.held; r != nil {
		e.held = nil
		return r, nil
	}
	r := e.in.pop(p.options.Window)
	if r == nil && e.in.ended {
		return nil, io.EOF
	}
	return r, nil
}

// accept frees the room of a record that the Placer took.
func (e *end) accept(r *record) {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.closed != nil || p.reset {
		return // dropped with all others
	}
	e.in.done(r)
	p.changed.Broadcast()
}

// refuse keeps a record that the Placer did not take, to present it again or not at all.
func (e *end) refuse(r *record, err error) {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.closed != nil || p.reset: // dropped with all others
	case errors.Is(err, transport.ErrStall):
		e.held = r
	default:
		e.refused = err
		e.in.done(r)
		p.changed.Broadcast()
	}
}

// park waits until there is a segment to receive or an error to report. ErrWoken: Wake was called.
func (e *end) park() error {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	for e.failure("read") == nil {
		if e.woken {
			e.woken = false
			return transport.ErrWoken
		}
		if len(e.in.records) > 0 || e.in.ended {
			return nil
		}
		p.changed.Wait()
	}
	return nil
}

// Discard makes room for the peer as it throws segments away.
func (e *end) Discard() error {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if err := e.failure("read"); err != nil {
			return err
		}
		r := e.held
		if e.held = nil; r == nil {
			r = e.in.pop(0)
		}
		switch {
		case r != nil:
			e.in.done(r)
			p.changed.Broadcast()
		case e.in.ended:
			return io.EOF
		default:
			p.changed.Wait()
		}
	}
}
