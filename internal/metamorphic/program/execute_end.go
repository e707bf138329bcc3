package program

import (
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/damage"
)

// compare waits until all work of a connection is done, and compares everything.
func (x *run) compare(s *Step) error {
	conn := s.End.Conn
	x.note(s.End, false, "compare")
	for side := range 2 {
		if err := x.performed(x.ends[End{conn, side}]); err != nil {
			return err
		}
	}
	for side := range 2 {
		e := x.ends[End{conn, side}]
		if err := x.arrived(e); err != nil {
			return fmt.Errorf("%v: %w", e.End, err)
		}
		if err := x.compareEnd(e); err != nil {
			return fmt.Errorf("%v: %w", e.End, err)
		}
	}
	if err := x.compareMemory(s); err != nil {
		return err
	}
	return x.checkDead(conn)
}

// performed waits until all work of an end is done.
func (x *run) performed(e *liveEnd) error {
	if !x.cfg.Waits {
		return x.drain(e)
	}
	last := e.sent[len(e.sent)-1].ID // the barrier
	for x.harvest(e); len(e.done) == 0 || e.done[len(e.done)-1].ID != last; {
		if err := x.await(e.qp.SendCQ()); err != nil {
			return fmt.Errorf("%v: #%d has not completed: %w", e.End, last, err)
		}
	}
	return nil
}

// await waits for completions of a CQ, and takes them.
func (x *run) await(cq *iwarp.CQ) error {
	var wcs [8]iwarp.WC
	n, err := cq.Wait(x.ctx, wcs[:])
	for _, wc := range wcs[:n] {
		if e := x.byQP[wc.QP]; cq == e.qp.SendCQ() {
			x.takeSent(e, wc)
		} else {
			x.takeReceived(e, wc)
		}
	}
	return err
}

// arrived waits for the completions of all messages that were sent. The messages have arrived, since the
// barrier after them was answered.
func (x *run) arrived(e *liveEnd) error {
	for x.harvest(e); len(e.got) < len(e.arrive); {
		if err := x.await(e.qp.RecvCQ()); err != nil {
			return fmt.Errorf("message %d of %d has not completed a receive: %w", len(e.got), len(e.arrive), err)
		}
	}
	return nil
}

// compareEnd compares the completions of an end on which all work is done.
func (x *run) compareEnd(e *liveEnd) error {
	for _, wc := range e.done {
		x.note(e.End, false, "%s", sentText(wc))
		x.outcome.addf(e.End, "%s", sentText(wc))
	}
	if err := checkSent(e.sent, e.done); err != nil {
		return err
	}
	for _, w := range e.sent {
		x.invalidated(w)
	}
	e.sent, e.done = nil, nil
	for i := e.compared; i < len(e.got); i++ {
		if i >= len(e.arrive) {
			return fmt.Errorf("%w: without a message: %v", ErrNotDue, receivedText(e.got[i]))
		}
		octets := x.octets(e, e.got[i])
		x.note(e.End, false, "%s", receivedText(e.got[i]))
		x.outcome.addf(e.End, "%s %08x", receivedText(x.without(e, e.got[i])), crc32.ChecksumIEEE(octets))
		if err := x.checkMessage(e, i, octets); err != nil {
			return err
		}
	}
	e.compared = len(e.got)
	return nil
}

// without returns wc without the part that is not determined: which receive of an SRQ a message takes depends on
// the other connections.
func (x *run) without(e *liveEnd, wc iwarp.WC) iwarp.WC {
	if x.hosts[e.Side].srq != nil {
		wc.ID = 0
	}
	return wc
}

// octets returns the octets of a received message.
func (x *run) octets(e *liveEnd, wc iwarp.WC) []byte {
	posted := x.queueOf(e).posted
	if wc.Status != iwarp.StatusSuccess || wc.ID >= uint64(len(posted)) {
		return nil
	}
	b := x.slots[posted[wc.ID]].b
	return b[:min(int(wc.Len), len(b))]
}

// queueOf returns the end whose receive queue e uses: with an SRQ, the end of connection 0.
func (x *run) queueOf(e *liveEnd) *liveEnd {
	if x.hosts[e.Side].srq != nil {
		return x.ends[End{0, e.Side}]
	}
	return e
}

// compareMemory compares all octets of a connection.
func (x *run) compareMemory(s *Step) error {
	for _, mem := range x.plan.Conns[s.End.Conn].Mems {
		live, want := x.mems[mem], s.Want[mem]
		if live == nil || want == nil {
			continue // it is made later
		}
		if !live.intact() {
			return fmt.Errorf("octets beside %s have changed", mem.Name)
		}
		if !x.equal(live.b, want) {
			return fmt.Errorf("%s: %s", mem.Name, difference(live.b, want))
		}
		x.outcome.addf(mem.End, "%s %08x", mem.Name, crc32.ChecksumIEEE(live.b))
	}
	return nil
}

// difference describes where octets differ.
func difference(got, want []byte) string {
	first, last, n := -1, 0, 0
	for i := range got {
		if got[i] != want[i] {
			if first < 0 {
				first = i
			}
			last = i
			n++
		}
	}
	return fmt.Sprintf("%d octets of [%d, %d] differ; the first is %#02x, want %#02x", n, first, last, got[first], want[first])
}

// fault ends a connection as a program says.
func (x *run) fault(e *liveEnd, s *Step) error {
	verb, how, _ := strings.Cut(s.How, " ")
	p := x.ends[e.peer()]
	x.note(e.End, false, "%s", s.How)
	switch Verb(verb) {
	case Close:
		for _, end := range []*liveEnd{e, p} {
			if err := x.checkSlots(end); err != nil {
				return fmt.Errorf("%v: %w", end.End, err)
			}
		}
		if how == "one" {
			return e.qp.Close()
		}
		var other error
		var both sync.WaitGroup
		both.Go(func() { other = p.qp.Close() })
		err := e.qp.Close()
		both.Wait()
		return errors.Join(err, other)
	case Abort:
		return e.qp.Abort()
	case Terminate:
		return e.qp.Terminate()
	default:
	}
	switch cut := x.cuts[e.Conn]; {
	case cut != nil:
		if x.hold {
			cut.Hold()
		}
		x.damaged[e.Conn] = slices.Contains(damages, how)
		cut.Arm(e.Side, s.N, how)
	case x.sockets != nil:
		x.damaged[e.Conn] = slices.Contains(silent, how)
		x.sockets.Arm(e.Side, s.N, how)
	default:
		return p.qp.Abort() // SCTP and the pipe of records have no stream of octets
	}
	return nil
}

// silent lists the kinds of damage to datagrams that SCTP does not repair.
var silent = []string{damage.HalfClose, damage.Vanish, damage.Address}

// checkSlots fills the send queue of an end on which all work is done: the queue must accept exactly as many work
// requests as it has slots.
func (x *run) checkSlots(e *liveEnd) error {
	wrs := make([]iwarp.SendWR, queueDepth+1)
	for i := range wrs {
		wrs[i] = iwarp.SendWR{ID: uint64(i), Op: iwarp.OpRDMAWrite}
	}
	var post *iwarp.PostError
	if err := e.qp.PostSend(wrs...); !errors.Is(err, iwarp.ErrQueueFull) || !errors.As(err, &post) || post.N != queueDepth {
		return fmt.Errorf("of %d work requests for %d free slots: %w", len(wrs), queueDepth, asError(err))
	}
	if err := x.drain(e); err != nil {
		return err
	}
	if len(e.done) != queueDepth {
		return fmt.Errorf("%d completions of %d work requests", len(e.done), queueDepth)
	}
	e.done = nil
	return nil
}

// finish waits for the end of a connection, or ends it where its fault may have no effect.
func (x *run) finish(conn int) error {
	a, b := x.ends[End{conn, 0}], x.ends[End{conn, 1}]
	if cut := x.cuts[conn]; cut != nil {
		cut.Release()
	}
	if f := x.plan.Conns[conn].Fault; f != nil && (f.Verb == Race || f.Verb == Cut) {
		for _, e := range []*liveEnd{a, b} {
			if err := x.drain(e); err != nil {
				return err
			}
		}
		x.breakOff(a, b, f)
	}
	for _, e := range []*liveEnd{a, b} {
		select {
		case <-e.qp.Done():
		case <-x.ctx.Done():
			return fmt.Errorf("%v does not end: %w", e.End, x.ctx.Err())
		}
		x.harvest(e)
	}
	return nil
}

// breakOff ends a connection whose fault may have left it alive.
func (x *run) breakOff(a, b *liveEnd, f *Op) {
	switch cut := x.cuts[a.Conn]; {
	case cut != nil:
		if f.how() == damage.Vanish { // each end gives up by itself
			_, _ = a.qp.Abort(), b.qp.Abort() // it may have ended
		}
		cut.Cut()
	case f.Verb == Race, x.sockets != nil && !x.damaged[a.Conn]: // otherwise SCTP misses its peer after some seconds
		_ = a.qp.Abort() // it may have ended
	}
}

// close ends everything. If nothing has failed so far, it compares what can be compared only then.
func (x *run) close(well bool) (err error) {
	var errs []error
	if !well {
		for _, e := range x.ends {
			_ = e.qp.Abort()
		}
	}
	for _, r := range x.regions {
		errs = append(errs, r.close(x.ctx))
	}
	x.closeLines()
	for _, h := range x.hosts {
		if h == nil {
			continue
		}
		if h.srq != nil {
			well = well && x.takenOfSRQ(&errs)
			errs = append(errs, h.srq.Close())
		}
		if h.shared != nil && h.recvCQ != nil {
			errs = append(errs, h.sendCQ.Close(), h.recvCQ.Close())
		}
		if h.pd != nil {
			errs = append(errs, h.pd.Close())
		}
		if h.shared == nil {
			errs = append(errs, h.rnic.Close())
		}
		errs = append(errs, x.collect(h), h.closeWindows())
	}
	if err := errors.Join(errs...); err != nil || !well {
		return err
	}
	return x.compareEnds()
}

// closeLines closes the lines and sockets that damage connections.
func (x *run) closeLines() {
	for _, cut := range x.cuts {
		cut.Close()
	}
	if x.sockets != nil {
		x.sockets.Close()
	}
}

// closeWindows checks that no part of a window is in use.
func (h *host) closeWindows() error {
	var errs []error
	for _, w := range h.windows {
		if s := w.Stats(); s.Granted != 0 || s.Queued != 0 || s.Unidentified != 0 {
			errs = append(errs, fmt.Errorf("of a window %d octets are not given back, %d Reads wait, %d were unknown", s.Granted, s.Queued, s.Unidentified))
		}
		errs = append(errs, w.Close())
	}
	return errors.Join(errs...)
}

// takenOfSRQ compares the receives that messages have taken with those that have completed.
func (x *run) takenOfSRQ(errs *[]error) bool {
	completed := 0
	for end, e := range x.ends {
		if end.Side == 1 {
			completed += len(e.got)
		}
	}
	if taken := x.hosts[1].srq.Stats().Taken; taken != uint64(completed) {
		*errs = append(*errs, fmt.Errorf("messages have taken %d receives of the SRQ, %d have completed", taken, completed))
		return false
	}
	return true
}

// collect takes the events of a host that has closed, or of its queue pairs.
func (x *run) collect(h *host) error {
	if h.shared != nil {
		return x.collectShared(h)
	}
	for ev := range h.events {
		if e := x.byQP[ev.QP]; e != nil {
			e.events = append(e.events, ev)
		}
	}
	return nil
}

// compareEnds compares how the connections have ended.
func (x *run) compareEnds() error {
	for i, c := range x.plan.Conns {
		for side := range 2 {
			e := x.ends[End{i, side}]
			if err := x.compareEnding(c, e); err != nil {
				return fmt.Errorf("end of %v: %w", e.End, err)
			}
		}
		if c.Fault != nil {
			if err := x.compareDoubt(c); err != nil {
				return fmt.Errorf("end of connection %d: %w", i, err)
			}
		}
	}
	return nil
}

// compareEnding compares the event of an end, and what has completed since the last comparison.
func (x *run) compareEnding(c *ConnPlan, e *liveEnd) error {
	for _, wc := range e.done {
		x.note(e.End, false, "%s", sentText(wc))
	}
	for _, wc := range e.got[e.compared:] {
		x.note(e.End, false, "%s", receivedText(wc))
	}
	kind, err := theEvent(e.events)
	if err != nil {
		return err
	}
	x.note(e.End, false, "event: %v: %v", kind, e.qp.Err())
	if allowed := allowedEvents(c.Fault, e.End, x.cfg); !containsKind(allowed, kind) {
		return fmt.Errorf("the event is %v (%w), want one of %v", kind, e.qp.Err(), allowed)
	} else if len(allowedEvents(c.Fault, e.End, Config{})) == 1 { // over every network
		x.outcome.addf(e.End, "event: %v", kind)
	}
	if err := checkDoubted(e.sent, e.done, c.Fault != nil); err != nil {
		return err
	}
	return x.checkReceives(e, c.Fault != nil)
}
