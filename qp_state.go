package iwarp

import (
	"errors"

	"github.com/goiwarp/iwarp/internal/names"
	"github.com/goiwarp/iwarp/internal/qpconn"
	"github.com/goiwarp/iwarp/rdmap"
)

// A State is the state of a QP (draft-hilland-rddp-verbs section 6.2).
//
//	Idle --established--> RTS --FIN, or Close--> Closing --both ended--> Idle
//	                       |                        |
//	                       |--Terminate--> Terminate --> Error
//	                       |--lost, Abort-----------------^
//	Closing --lost, Abort, a message after our own end----^
//
// A QP serves one connection, so the Idle state after it, like Error, is final.
type State uint8

const (
	StateIdle      State = iota // not established yet, or gracefully ended
	StateRTS                    // established
	StateClosing                // one side has ended its half gracefully
	StateTerminate              // a Terminate is due, or has been received
	StateError                  // ended with an error
)

// stateNames are the names of states.
var stateNames = [...]string{
	StateIdle: "Idle", StateRTS: "RTS", StateClosing: "Closing", StateTerminate: "Terminate",
	StateError: "Error",
}

func (s State) String() string { return names.Of(s, stateNames[:], "State(%d)") }

// states maps the stages of an established connection, except the last, to states.
var states = [...]State{
	qpconn.Open: StateRTS, qpconn.Draining: StateRTS, qpconn.Closing: StateClosing,
	qpconn.Terminating: StateTerminate, qpconn.Failed: StateError,
}

// State returns the state of the QP.
func (qp *QP) State() State {
	conn := qp.conn.Load()
	if conn != nil {
		if stage := conn.Stage(); stage != qpconn.Ended {
			return states[stage]
		}
	}
	if qp.Err() != nil {
		return StateError
	}
	return StateIdle
}

// Err returns the first cause of the QP's end, in an error that wraps net.ErrClosed. It
// returns nil while the QP has not ended, and after a graceful end.
func (qp *QP) Err() error {
	var cause error
	if conn := qp.conn.Load(); conn != nil {
		_, cause = conn.Cause()
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	switch {
	case cause == nil || qp.err != nil: // once recorded, the error does not change
	case errors.Is(cause, rdmap.ErrLate):
		qp.err = errBadClose
	default:
		qp.err = qpconn.EndError(cause)
	}
	return qp.err
}

// Done returns a channel that is closed when the QP has ended and all its work
// requests are completed.
func (qp *QP) Done() <-chan struct{} { return qp.done }

// Terminated returns the Terminate that this side has sent or received, or nil if there was
// none.
func (qp *QP) Terminated() *TerminateError {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.term
}

// cause is like Err, for a caller that tries to use an ended QP. It never returns nil.
func (qp *QP) cause() error {
	if err := qp.Err(); err != nil {
		return err
	}
	if term := qp.Terminated(); term != nil {
		return term
	}
	return errQPClosed
}

// vendor returns the first word of the Terminate, or 0 if there was none.
func (qp *QP) vendor() uint32 {
	if term := qp.Terminated(); term != nil {
		return uint32(term.code()) << 16
	}
	return 0
}
