package rmaperf

import (
	"fmt"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/rma"
	"github.com/goiwarp/iwarp/solicit"
)

const (
	// timer is the OpTimeout, and the dispatch timeout, whose precision is measured.
	timer = 50 * time.Millisecond
	// timerSlack is how many times timer they may take.
	timerSlack = 1.10
)

// timeouts compares how long operations that time out take with their timers.
func (b *bench) timeouts() error { return b.on((*stand).noAnswer, (*stand).fullWindow) }

// heldEnd connects to a server whose region heldRegion does not answer.
func (s *stand) heldEnd(window int64) (e *end, waits *rma.Handle, answers *rma.Handle, err error) {
	what := s.b.sealedService(1)
	a, closed, err := s.b.open(what)
	if err != nil {
		return nil, nil, nil, err
	}
	s.ends = append(s.ends, func() error { closed(); return nil })
	cfg, err := clientConfig(true, what.MaxOp)
	if err != nil {
		return nil, nil, nil, err
	}
	cfg.Dispatch = [2]time.Duration{timer, timer}
	if cfg.Solicitor, err = rma.NewSolicitor(solicit.Config{Fixed: window}); err != nil {
		return nil, nil, nil, err
	}
	if e, err = s.endWith(a.Addr, what, cfg, 2); err != nil {
		return nil, nil, nil, err
	}
	if waits, err = e.open(heldRegion); err != nil {
		return nil, nil, nil, err
	}
	if answers, err = e.open(1); err != nil {
		return nil, nil, nil, err
	}
	// The access goes on before the connection is closed, which waits for the server.
	s.ends = append(s.ends, func() error {
		_, err := s.b.do(order{Do: doRelease, Service: a.Service})
		return err
	})
	_, err = s.b.do(order{Do: doHold, Service: a.Service})
	return e, waits, answers, err
}

// noAnswer reads a region whose octets the server does not get.
func (s *stand) noAnswer() error {
	e, waits, _, err := s.heldEnd(ample)
	if err != nil {
		return err
	}
	cmd := reads(waits)
	cmd.Timeout = timer
	worst, err := s.b.worst(e.fails("TIMEOUT", cmd, rma.Timeout, 0))
	s.b.Marks.Most("TIMEOUT, the longest against its timer of 50 ms", worst, timerSlack, "")
	return err
}

// fullWindow measures a read that must wait, because another read was granted the whole window of the client.
func (s *stand) fullWindow() error {
	e, waits, answers, err := s.heldEnd(smallSize + tag)
	if err != nil {
		return err
	}
	first := reads(waits)
	first.Timeout = patience
	if _, err := e.portal.Post(first); err != nil {
		return err
	}
	worst, err := s.b.worst(e.fails("DISPATCH_TIMEOUT", reads(answers), rma.DispatchTimeout, 0))
	s.b.Marks.Most("DISPATCH_TIMEOUT, the longest against its timer of 50 ms", worst, timerSlack, "")
	return err
}

// worst does an operation twice for each pair, and returns the longest time relative to timer.
func (b *bench) worst(t *timed) (float64, error) {
	var all []time.Duration
	for range 2 * b.opts.Pairs {
		took, err := t.do()
		if err != nil {
			return 0, fmt.Errorf("%s: %w", t.name, err)
		}
		if took < timer {
			return 0, fmt.Errorf("%s: after %v, before its timer of %v", t.name, took, timer)
		}
		all = append(all, took)
	}
	slices.Sort(all)
	b.Note("%s: %v to %v", t.name, all[0], all[len(all)-1])
	return float64(all[len(all)-1]) / float64(timer), nil
}
