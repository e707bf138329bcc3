package program

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/damage"
)

// checkDoubted checks the completions of a queue that has ended: they are in order, once each, and
// none succeeds after a failure.
func checkDoubted(works []*Work, wcs []iwarp.WC, mayFail bool) error {
	var f failures
	for _, w := range works {
		if len(wcs) == 0 || wcs[0].ID != w.ID {
			if f.all > 0 || w.Flags&iwarp.Unsignaled == 0 {
				return fmt.Errorf("%w #%d", ErrLost, w.ID)
			}
			continue
		}
		wc := wcs[0]
		wcs = wcs[1:]
		if f.count(wc) {
			continue
		}
		if f.all > 0 {
			return fmt.Errorf("%s, after a failure", sentText(wc))
		}
		if err := checkDoubtedSuccess(w, wc); err != nil {
			return err
		}
	}
	if len(wcs) > 0 {
		return fmt.Errorf("%w: %s", ErrNotDue, sentText(wcs[0]))
	}
	return f.check(mayFail)
}

// checkDoubtedSuccess compares a success with its work request.
func checkDoubtedSuccess(w *Work, wc iwarp.WC) error {
	switch {
	case w.Flags&iwarp.Unsignaled != 0:
		return fmt.Errorf("%s: it is unsignaled", sentText(wc))
	case w.Bad != "" && w.confirms():
		return fmt.Errorf("%s: it must be refused", sentText(wc))
	}
	return checkSuccess(w, wc)
}

// failures counts the completions of a queue that are failures.
type failures struct {
	all    int
	causes int // failures other than flushed
}

// count counts wc, and reports whether it is a failure.
func (f *failures) count(wc iwarp.WC) bool {
	if wc.Status == iwarp.StatusSuccess {
		return false
	}
	f.all++
	if wc.Status != iwarp.StatusFlushed {
		f.causes++
	}
	return true
}

// check checks that at most one failure has a cause of its own.
func (f *failures) check(mayFail bool) error {
	switch {
	case f.all > 0 && !mayFail:
		return errors.New("work has failed, but nothing was wrong")
	case f.causes > 1:
		return fmt.Errorf("%d work requests have failed otherwise than by a flush", f.causes)
	}
	return nil
}

// checkReceives compares the receives of a queue that has ended.
func (x *run) checkReceives(e *liveEnd, mayFail bool) error {
	var f failures
	for i := e.compared; i < len(e.got); i++ {
		wc := e.got[i]
		var err error
		switch {
		case f.count(wc):
			err = x.checkTaken(e, i)
		case f.all > 0:
			err = fmt.Errorf("%s, after a failure", receivedText(wc))
		case i >= len(e.arrive) || !mayFail:
			err = fmt.Errorf("%s: no message was sent", receivedText(wc))
		default:
			err = x.checkMessage(e, i, x.octets(e, wc))
		}
		if err != nil {
			return err
		}
	}
	if x.hosts[e.Side].srq == nil && len(e.got) != len(e.posted) {
		return fmt.Errorf("%d receives have completed of %d", len(e.got), len(e.posted))
	}
	return f.check(mayFail || f.causes == 0) // every end flushes the receives that remain
}

// compareDoubt compares the octets of a connection that has ended with a fault.
func (x *run) compareDoubt(c *ConnPlan) error {
	var confirmed, open []*Work
	for side := range 2 {
		e := x.ends[End{c.Own[0].End.Conn, side}]
		known := x.confirmedOf(e)
		for i, w := range e.sent {
			if known[i] {
				confirmed = append(confirmed, w)
			} else {
				open = append(open, w)
			}
		}
	}
	for _, mem := range c.Mems {
		live := x.mems[mem]
		if live == nil {
			continue
		}
		if !live.intact() {
			return fmt.Errorf("octets beside %s have changed", mem.Name)
		}
		x.counts.Due += len(c.Base[mem])
		x.counts.Octets += len(live.b)
		if err := checkOctets(mem, live.b, c.Base[mem], confirmed, open); err != nil {
			return err
		}
	}
	return nil
}

// confirmedOf reports which work requests of an end are known to be performed.
func (x *run) confirmedOf(e *liveEnd) []bool {
	success := make(map[uint64]bool)
	for _, wc := range e.done {
		success[wc.ID] = wc.Status == iwarp.StatusSuccess
	}
	p := x.ends[e.peer()]
	received := make(map[*Work]bool)
	for i := p.compared; i < len(p.got) && p.got[i].Status == iwarp.StatusSuccess; i++ {
		received[p.arrive[i].Work] = true
	}
	known := make([]bool, len(e.sent))
	answered, placed := false, false // all work up to here
	for i := len(e.sent) - 1; i >= 0; i-- {
		w := e.sent[i]
		placed = placed || received[w]
		answered = answered || w.confirms() && success[w.ID]
		known[i] = answered || placed && !w.confirms()
		// Work after a fence was sent when all work before the fence had been answered.
		answered = answered || placed && w.Flags&(iwarp.ReadFence|iwarp.LocalFence) != 0
	}
	return known
}

// checkOctets checks that each octet has its value after the confirmed work, or one that a work request in doubt
// would have written.
func checkOctets(mem *Mem, got, base []byte, confirmed, open []*Work) error {
	want := bytes.Clone(base)
	for _, w := range confirmed {
		for _, f := range w.Effects {
			if f.Mem == mem {
				copy(want[f.Off:], f.Data)
			}
		}
	}
	if bytes.Equal(got, want) {
		return nil
	}
	allowed := bytes.Clone(want)
	for _, w := range open {
		for _, f := range w.Effects {
			if f.Mem != mem {
				continue
			}
			for i, b := range f.Data {
				if at := f.Off + i; got[at] == b {
					allowed[at] = b
				}
			}
		}
	}
	if !bytes.Equal(got, allowed) {
		return fmt.Errorf("%s: %s", mem.Name, difference(got, allowed))
	}
	return nil
}

// theEvent returns the event that reports the end. It ignores events that report waits, which depend on time.
func theEvent(events []iwarp.Event) (iwarp.EventKind, error) {
	var ends []iwarp.EventKind
	for _, ev := range events {
		if ev.Kind != iwarp.EventNoReceive && ev.Kind != iwarp.EventNoProgress {
			ends = append(ends, ev.Kind)
		}
	}
	if len(ends) != 1 {
		return 0, fmt.Errorf("the events are %v, want one", ends)
	}
	return ends[0], nil
}

func containsKind(all []iwarp.EventKind, k iwarp.EventKind) bool { return slices.Contains(all, k) }

// allowedEvents returns the events with which an end may end.
func allowedEvents(fault *Op, end End, cfg Config) []iwarp.EventKind {
	if fault == nil {
		return []iwarp.EventKind{iwarp.EventClosed}
	}
	local := fault.End == end
	lost := []iwarp.EventKind{iwarp.EventConnectionLost}
	if !cfg.isMPA() || fault.how() == damage.FIN || slices.Contains(damages, fault.how()) {
		// It looks as if the peer had ended gracefully, which is an error if work is outstanding (RFC 5043 section 6, RFC 5041 section 6.2).
		lost = append(lost, iwarp.EventClosed, iwarp.EventTerminated, iwarp.EventTerminateReceived)
	}
	switch fault.Verb {
	case Abort:
		if local {
			return []iwarp.EventKind{iwarp.EventAborted}
		}
		return lost
	case Cut:
		return append(lost, iwarp.EventAborted)
	case Race:
		return append(lost, iwarp.EventAborted, iwarp.EventTerminated, iwarp.EventTerminateReceived)
	case Terminate:
		if !local && end.Side == 0 { // a responder that has received nothing may not send, and only ends the connection (RFC 5044 section 7.1.2)
			return append(lost, iwarp.EventTerminateReceived, iwarp.EventClosed, iwarp.EventTerminated)
		}
		local = !local // the end that sends the Terminate gets the event of an end that finds an error
	default:
	}
	if local {
		return []iwarp.EventKind{iwarp.EventTerminateReceived}
	}
	return []iwarp.EventKind{iwarp.EventTerminated}
}
