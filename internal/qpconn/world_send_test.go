package qpconn

func (s *world) posting(name string, at func(*world) *place, send, next place, x *stepper) {
	x.inner(name+"Post", func(n *world) {
		*at(n) = next
		if n.step((*arbiter[uint8]).post)&doSend != 0 {
			*at(n) = send
		}
	})
}

// senderPlaces are where a goroutine that sends goes: with the next share, when it has sent a share, when there is
// nothing more to send, and without the right.
type senderPlaces struct{ sends, shared, sent, lost place }

// sending is one step of a goroutine with the right to send: a share, which is one message, or its report to the arbiter
// afterwards.
func (s *world) sending(name string, at func(*world) *place, to senderPlaces, mayWait bool, x *stepper) {
	event := func(label string, f func(*arbiter[uint8]) do) {
		x.inner(name+label, func(n *world) {
			if n.step(f)&doSend != 0 {
				*at(n) = to.sends
			} else {
				*at(n) = to.lost
			}
		})
	}
	switch {
	case *at(s) == to.shared:
		event("Share", func(a *arbiter[uint8]) do { return a.share(false) })
		event("Share, a waiter is expected", func(a *arbiter[uint8]) do { return a.share(true) })
	case *at(s) == to.sent:
		event("Sent", (*arbiter[uint8]).sent)
	case s.closed:
		event("Broken", (*arbiter[uint8]).broken)
	case s.answers == 0 && !s.own:
		x.inner(name+"finds nothing to send", func(n *world) { *at(n) = to.sent })
	case s.full && mayWait:
	case s.full:
		event("Full", (*arbiter[uint8]).full)
	default:
		x.inner(name+"sends a share", func(n *world) {
			if n.answers > 0 {
				n.answers--
			} else {
				n.own = false
				n.complete(1)
				n.nudges++
			}
			if n.answers > 0 || n.own {
				*at(n) = to.shared
			}
		})
	}
}
