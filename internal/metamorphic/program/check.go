package program

import (
	"fmt"

	"github.com/goiwarp/iwarp"
)

// checkSent compares the completions of a queue whose work has all succeeded.
func checkSent(works []*Work, wcs []iwarp.WC) error {
	for _, w := range works {
		if w.Flags&iwarp.Unsignaled != 0 {
			continue
		}
		if len(wcs) == 0 {
			return fmt.Errorf("%w #%d", ErrLost, w.ID)
		}
		if err := checkSuccess(w, wcs[0]); err != nil {
			return err
		}
		wcs = wcs[1:]
	}
	if len(wcs) > 0 {
		return fmt.Errorf("%w: %s", ErrNotDue, sentText(wcs[0]))
	}
	return nil
}

// checkSuccess compares one completion with its work request.
func checkSuccess(w *Work, wc iwarp.WC) error {
	switch {
	case wc.ID > w.ID:
		return fmt.Errorf("%s: %w #%d (%v)", sentText(wc), ErrLost, w.ID, w.Op)
	case wc.ID < w.ID:
		return fmt.Errorf("%w: %s", ErrNotDue, sentText(wc))
	case wc.Op != w.Op:
		return fmt.Errorf("%s where #%d (%v) was due", sentText(wc), w.ID, w.Op)
	case wc.Status != iwarp.StatusSuccess:
		return fmt.Errorf("%s: %w", sentText(wc), wc.Err())
	case isAtomic(w.Op) && wc.Old != w.Old:
		return fmt.Errorf("%s: the value before was %#x, want %#x", sentText(wc), wc.Old, w.Old)
	case w.completes() >= 0 && int(wc.Len) != w.completes():
		return fmt.Errorf("%s: of %d octets, want %d", sentText(wc), wc.Len, w.completes())
	}
	return nil
}

// completes returns the length that the completion of w reports, or -1 if none is specified.
func (w *Work) completes() int {
	switch {
	case isAtomic(w.Op):
		return cellLen
	case w.Op == iwarp.OpSend || w.Op == iwarp.OpSendInvalidate || w.isWrite() || w.confirms() && w.Op != iwarp.OpCommit:
		return w.length()
	}
	return -1
}

// checkMessage compares completion i of a receive queue with its message.
func (x *run) checkMessage(e *liveEnd, i int, octets []byte) error {
	wc, msg := e.got[i], e.arrive[i]
	if err := x.checkTaken(e, i); err != nil {
		return err
	}
	text := fmt.Sprintf("message %d: %s", i, receivedText(wc))
	switch {
	case wc.Status != iwarp.StatusSuccess:
		return fmt.Errorf("%s: %w", text, wc.Err())
	case msg.Never:
		return fmt.Errorf("%s: it must not be received", text)
	case wc.Op != msg.Op || int(wc.Len) != len(msg.Data) || wc.Imm != msg.Imm:
		return fmt.Errorf("%s, want %v of %d octets, %x", text, msg.Op, len(msg.Data), msg.Imm)
	case !x.equal(octets, msg.Data):
		return fmt.Errorf("%s: %s", text, difference(octets, msg.Data))
	case wc.Flags&iwarp.Solicited != 0 != msg.Sol:
		return fmt.Errorf("%s: solicited is %t, want %t", text, !msg.Sol, msg.Sol)
	case (wc.STag != 0) != (msg.Inval != nil) || msg.Inval != nil && wc.STag != x.regions[msg.Inval].lent.STag:
		return fmt.Errorf("%s: it says that it has invalidated %v", text, wc.STag)
	}
	return nil
}

// checkTaken checks that completion i is of the right receive: the next one in order, or, with an SRQ, one that completes once.
func (x *run) checkTaken(e *liveEnd, i int) error {
	id := e.got[i].ID
	if x.hosts[e.Side].srq == nil {
		if id != uint64(i) {
			return fmt.Errorf("%s where #%d was due", receivedText(e.got[i]), i)
		}
		return nil
	}
	if id >= uint64(len(x.queueOf(e).posted)) {
		return fmt.Errorf("%s: there is no such receive", receivedText(e.got[i]))
	}
	for end, other := range x.ends {
		for k, wc := range other.got {
			if end.Side == e.Side && wc.ID == id && (other != e || k != i) {
				return fmt.Errorf("%s: %w", receivedText(wc), ErrTwice)
			}
		}
	}
	return nil
}

// sentText describes a completion of a send queue.
func sentText(wc iwarp.WC) string {
	s := fmt.Sprintf("#%d %v: %v", wc.ID, wc.Op, wc.Status)
	if wc.Status == iwarp.StatusSuccess && isAtomic(wc.Op) {
		s += fmt.Sprintf(", was %#x", wc.Old)
	}
	return s
}

// receivedText describes a completion of a receive.
func receivedText(wc iwarp.WC) string {
	if wc.Status != iwarp.StatusSuccess {
		return fmt.Sprintf("receive #%d: %v", wc.ID, wc.Status)
	}
	s := fmt.Sprintf("receive #%d: %v, %d octets", wc.ID, wc.Op, wc.Len)
	if wc.Op == iwarp.OpRecvImm {
		s += fmt.Sprintf(", %x", wc.Imm)
	}
	return s
}
