package op

// An Outcome is how an operation ended. The numbers are those on the wire, where local outcomes do not
// occur.
type Outcome uint16

// The outcomes.
const (
	OK              Outcome = iota
	RemoteAuth              // the key is wrong; no effect
	NACK                    // the server refuses the operation for now; no effect
	Timeout                 // local: no answer in time; a write has taken effect, or never will
	DispatchTimeout         // local: it waited too long, or found no memory; no effect
	Bounds                  // outside of the region; no effect
	RemoteError             // the Buffer of the region has failed; the effect is unknown
	Conflict                // of a Rekey: not the next epoch; no effect
	Closed                  // local: the connection was gone before the data of a write were sent

	Outcomes = 9 // how many there are
)

// A Reason gives the reason of an Outcome.
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

// told returns the Outcome for the code of a STATUS. Unknown codes, and codes of local outcomes, become
// RemoteError, which says nothing about the effect.
func told(code uint16) Outcome {
	switch o := Outcome(code); o {
	case RemoteAuth, NACK, Bounds, Conflict:
		return o
	default:
		return RemoteError
	}
}

// NoEffect reports whether an operation with this outcome has certainly changed nothing, and never
// will, so that it may be repeated.
func (o Outcome) NoEffect() bool {
	switch o {
	case RemoteAuth, NACK, DispatchTimeout, Bounds, Conflict, Closed:
		return true
	default:
		return false
	}
}

// A Refund is how a grant is returned: the outcomes that a window of package solicit distinguishes.
type Refund uint8

// The refunds.
const (
	RefundOK Refund = iota
	RefundNACK
	RefundTimeout
	RefundFailed
)

// refundOf returns how the grant of an operation that ended with a STATUS is returned.
func refundOf(o Outcome) Refund {
	if o == NACK {
		return RefundNACK
	}
	return RefundFailed
}
