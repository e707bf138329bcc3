package op

import "time"

// A HelloState is the state of the exchange of HELLOs, which comes before all operations.
//
//	state     event            next state and what the caller does
//	Silent    Start            Asked, the initiator sends HELLO; Waits, the responder does not
//	Asked     HELLO            Done: both know the suite
//	Waits     HELLO            Done: the responder answers it
//	Asked,    another message  Failed, NotFirst
//	Waits     timer            Failed, NoHello
//	Done      HELLO            Failed, NotFirst
type HelloState uint8

// The states.
const (
	HelloSilent HelloState = iota
	HelloAsked
	HelloWaits
	HelloDone
	HelloFailed
)

// A Hello is the exchange on one connection. The zero Hello has not started.
type Hello struct {
	state HelloState
	due   time.Time
}

// State returns the state of the exchange.
func (h *Hello) State() HelloState { return h.state }

// Start begins the exchange; timeout is the time until the HELLO of the peer must have come. It reports
// whether this side sends its HELLO now, because it is the initiator.
func (h *Hello) Start(now time.Time, initiator bool, timeout time.Duration) (send bool) {
	h.state, h.due = HelloWaits, now.Add(timeout)
	if initiator {
		h.state = HelloAsked
	}
	return initiator
}

// Receive handles the type of each message that comes. It reports whether this side sends its HELLO
// now, as an answer, and returns why the connection ends, if it does.
func (h *Hello) Receive(t Type) (send bool, why Why) {
	switch {
	case h.state == HelloDone && t != TypeHello:
		return false, 0
	case h.state == HelloAsked && t == TypeHello:
		h.state = HelloDone
		return false, 0
	case h.state == HelloWaits && t == TypeHello:
		h.state = HelloDone
		return true, 0
	}
	h.state = HelloFailed
	return false, NotFirst
}

// Tick returns why the connection ends, if it does.
func (h *Hello) Tick(now time.Time) Why {
	if due, ok := h.Deadline(); !ok || now.Before(due) {
		return 0
	}
	h.state = HelloFailed
	return NoHello
}

// Deadline returns when Tick has work. It reports false if there is no timer.
func (h *Hello) Deadline() (time.Time, bool) {
	return h.due, h.state == HelloAsked || h.state == HelloWaits
}
