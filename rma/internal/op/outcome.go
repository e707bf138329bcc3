package op

// An Outcome is how an operation ended. The numbers are those of the wire, where the local ones do
// not occur.
type Outcome uint16

// The outcomes.
const (
	OK              Outcome = iota
	RemoteAuth              // the key is wrong; no effect
	NACK                    // the server does not do it now; no effect
	Timeout                 // local: no answer in time; a write is done or not, but never later
	DispatchTimeout         // local: it waited too long, and nothing was sent
	Bounds                  // outside of the region; no effect
	RemoteError             // what backs the region has failed; the effect is unknown
	Conflict                // of a Rekey: not the next epoch; no effect
	Closed                  // local: the connection was gone before the data of a write were sent

	Outcomes = 9 // how many there are
)

// A Reason says more about an Outcome.
type Reason uint16

// The reasons of RemoteAuth.
const (
	StaleEpoch Reason = 1 + iota
	BadKey
	BadData
)

// The reasons of NACK.
const (
	QueueFull Reason = 1 + iota
	NoWindow
	TooLate
	Closing
)

// told is the Outcome for the code of a STATUS. Codes that are unknown, or of local outcomes, are
// failures that say nothing about the effect.
func told(code uint16) Outcome {
	switch o := Outcome(code); o {
	case RemoteAuth, NACK, Bounds, Conflict:
		return o
	default:
		return RemoteError
	}
}

// NoEffect reports whether an operation that ended so has changed nothing for sure, and never
// will, so that it may be repeated.
func (o Outcome) NoEffect() bool {
	switch o {
	case RemoteAuth, NACK, DispatchTimeout, Bounds, Conflict, Closed:
		return true
	default:
		return false
	}
}

// A Refund is how a grant is given back: the outcomes that a window of package solicit knows.
type Refund uint8

// The refunds.
const (
	RefundOK Refund = iota
	RefundNACK
	RefundTimeout
	RefundFailed
)

// refundOf is how the grant of an operation is given back that ended with a STATUS.
func refundOf(o Outcome) Refund {
	if o == NACK {
		return RefundNACK
	}
	return RefundFailed
}
