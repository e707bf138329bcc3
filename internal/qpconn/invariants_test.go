package qpconn

import "fmt"

// broken reports what is wrong with a state, whatever happens next.
func (s world) broken() string {
	for _, check := range []func() string{
		func() string { return s.fault },
		s.brokenPoller, s.brokenReceive, s.brokenQueue, s.brokenReader, s.brokenSend, s.brokenEnd,
	} {
		if fault := check(); fault != "" {
			return fault
		}
	}
	return ""
}

// brokenPoller: the poller knows of the connection if and only if the connection is armed.
func (s *world) brokenPoller() string {
	armed := s.arbiter.rx == rxArmed
	switch {
	case s.budget.lateDisarm:
	case armed && !s.armed && !s.fires:
		return "it is armed, and the poller does not know"
	case !armed && s.armed:
		return "it is not armed, and the poller does not know"
	}
	return ""
}

// brokenReceive: at most one goroutine receives, and it holds the right. A goroutine that holds the right is at work or
// on its way.
func (s *world) brokenReceive() string {
	a, receiving := &s.arbiter, 0
	for i := range s.waiters {
		w, id := &s.waiters[i], uint8(i+1)
		if w.receives() {
			receiving++
			if !a.holds(id) {
				return fmt.Sprintf("waiter %d receives without the right", id)
			}
		}
		if a.holds(id) && w.at <= hasSent {
			return fmt.Sprintf("waiter %d has gone away with the right to receive", id)
		}
		if a.holds(id) && a.rx == rxParked && w.at != aboutToPark && w.at != parks && w.at != leaves {
			return fmt.Sprintf("waiter %d is at work, and is taken for parked", id)
		}
	}
	if s.reader != away {
		receiving++
		if !a.holds(theReader) {
			return "the reader runs without the right to receive"
		}
	} else if a.holds(theReader) {
		return "the reader holds the right to receive, and does not run"
	}
	if receiving > 1 {
		return "two goroutines receive"
	}
	return ""
}

// brokenQueue: a waiter that sleeps while it could receive is queued, once. The queue is empty while no goroutine has
// the right.
func (s *world) brokenQueue() string {
	a := &s.arbiter
	open := !a.noArm && a.phase == phaseOpen && a.rx != rxOver && a.rx != rxEnded
	for i := range s.waiters {
		w, id := &s.waiters[i], uint8(i+1)
		if w.at == sleeps && open && !a.queued(id) && !a.holds(id) {
			return fmt.Sprintf("waiter %d sleeps, and is not queued", id)
		}
		if a.queued(id) && a.holds(id) {
			return fmt.Sprintf("waiter %d holds the right, and is queued for it", id)
		}
		if a.queued(id) && w.at <= comes {
			return fmt.Sprintf("waiter %d is queued, and is not there", id)
		}
	}
	if a.queue != [3]uint8{} && a.rx < rxBusy && a.rx != rxStalled && a.rx != rxUnstarted {
		return "waiters are queued on a connection that no goroutine reads"
	}
	return ""
}

// brokenReader: the reader gives the right up to waiters.
func (s *world) brokenReader() string {
	a := &s.arbiter
	switch {
	case a.rx == rxRecalled && a.holder != theReader:
		return "a waiter is recalled"
	case !a.holds(theReader):
	case a.rx == rxParked && s.reader != parks && s.reader != aboutToPark:
		return "the reader is at work, and is taken for parked"
	case a.rx == rxParked && !a.noArm && a.queue != [3]uint8{}:
		return "the reader parks although a waiter is queued"
	}
	if a.phase == phaseDiscard && a.rx < rxOver {
		return "no goroutine discards the input"
	}
	if a.phase == phaseDiscard && a.rx == rxParked && a.holder != theReader {
		return "a waiter parks while the reader must discard the input"
	}
	return ""
}

// brokenSend: at most one goroutine sends, and it has the right. The right is offered only while a goroutine is there to
// take it.
func (s *world) brokenSend() string {
	a, sending := &s.arbiter, 0
	for i := range s.waiters {
		if s.waiters[i].sends() {
			sending++
		}
	}
	for _, at := range []place{s.reader, s.writer, s.poster} {
		if at == sends || at == hasShared || at == hasSent {
			sending++
		}
	}
	has := a.tx == txSending || a.tx == txSendingMore || a.tx == txWriter || a.tx == txWriterMore
	switch {
	case sending > 1:
		return "two goroutines send"
	case has != (sending == 1):
		return "a goroutine sends without the right, or has it and does not send"
	case (a.tx == txWriter || a.tx == txWriterMore) != (s.writer != away):
		return "the writer and its state disagree"
	case a.tx == txOffered && (a.rx < rxBusy && a.rx != rxReserved && !s.sweeps || a.phase == phaseDiscard):
		return "the right to send is offered, but no goroutine is expected"
	case a.tx == txOffered && a.rx == rxParked:
		return "the right to send is offered to a holder that is left parked"
	}
	return ""
}

// brokenEnd: once the end is finished, no goroutine has a right.
func (s *world) brokenEnd() string {
	if s.finished && (s.arbiter.rx != rxEnded || s.arbiter.tx != txClosed) {
		return "it is finished while a goroutine has a right"
	}
	return ""
}

// resting reports what is wrong with a state in which the program has nothing more to do.
func (s world) resting() string {
	for i := range s.waiters {
		w := &s.waiters[i]
		switch {
		case w.at == away:
		case w.done || w.cancelled:
			return fmt.Sprintf("waiter %d sleeps although its wait is over", i+1)
		case s.finished:
			return fmt.Sprintf("waiter %d sleeps for ever", i+1)
		}
	}
	a := &s.arbiter
	waitsForReceive := a.rx == rxStalled && s.in[2] && !s.posted
	waitsForNetwork := s.full && s.writer != away
	switch {
	case (a.phase == phaseClosed) != s.finished:
		return "it was closed, and has not finished"
	case s.finished && (s.reader != away || s.writer != away):
		return "a goroutine is left over"
	case s.finished:
		return ""
	case a.rx == rxReserved:
		return "the right to receive is reserved for ever"
	case a.rx == rxStalled && s.posted:
		return "it is stalled although a receive is posted"
	case s.input() && !waitsForReceive:
		return "there is input that no goroutine reads"
	case a.tx == txOffered:
		return "the right to send is offered for ever"
	case (s.answers > 0 || s.own) && !waitsForNetwork:
		return "there is something to send that no goroutine sends"
	case s.reader != away && !a.noArm && a.phase == phaseOpen:
		return "an idle connection has a reader"
	case s.writer != away && !s.full:
		return "an idle connection has a writer"
	}
	return ""
}
