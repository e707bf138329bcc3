package wire

import (
	"errors"
	"fmt"
	"slices"
)

// The ways in which an end may have sent something wrong.
var (
	ErrTerminate = errors.New("wire: the Terminates are not the expected ones")
	ErrSends     = errors.New("wire: the Sends are not of the expected kinds")
	ErrRTR       = errors.New("wire: the ready-to-receive message is not of the expected kind")
)

// Expect is what an end must have sent in a case.
type Expect struct {
	// Terminate is the Terminate that ends the case's only connection; nil: there is none.
	Terminate *Terminate
	// AnyTerminate: the connections may end with Terminates or without.
	AnyTerminate bool
	// Sends lists the kinds of all messages that are Sends; nil: they are not checked.
	Sends []Opcode
	// RTR: there are connections on which the two ends have agreed on a ready-to-receive
	// message, and on each of them it is of this kind; nil: there are none.
	RTR *Opcode
	// Upper is the protocol that the end serves; its answers are checked by CheckAnswers.
	Upper Upper
}

// Check compares what was sent with what is expected. It is an error if something is expected and
// nothing was sent.
func (e Expect) Check(s *Sent) error {
	return errors.Join(e.checkTerminates(s.Terminates), e.checkSends(s.Sends), e.checkRTRs(s.RTRs))
}

func (e Expect) checkTerminates(have []Terminate) error {
	var want []Terminate
	if e.Terminate != nil {
		want = append(want, *e.Terminate)
	}
	if e.AnyTerminate || slices.Equal(have, want) {
		return nil
	}
	return fmt.Errorf("%w: sent %v, want %v", ErrTerminate, have, want)
}

func (e Expect) checkSends(have []Opcode) error {
	if e.Sends == nil || slices.Equal(have, e.Sends) {
		return nil
	}
	return fmt.Errorf("%w: sent %v, want %v", ErrSends, have, e.Sends)
}

func (e Expect) checkRTRs(have []Opcode) error {
	switch {
	case e.RTR == nil && len(have) > 0:
		return fmt.Errorf("%w: sent %v, want none", ErrRTR, have)
	case e.RTR != nil && len(have) == 0:
		return fmt.Errorf("%w: sent none, want %v", ErrRTR, *e.RTR)
	case e.RTR != nil && slices.ContainsFunc(have, func(kind Opcode) bool { return kind != *e.RTR }):
		return fmt.Errorf("%w: sent %v, want %v", ErrRTR, have, *e.RTR)
	}
	return nil
}
