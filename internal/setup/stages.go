package setup

import "context"

// A Stage is a part of the set-up of a connection that this side requests. Stages follow one
// another in this order; a connection skips the stages that it does not need.
type Stage uint8

// The stages.
const (
	StageQP      Stage = iota // run by the caller: the queue pair is made
	StageDial                 // the connection of the layer below is made
	StageSecure               // the TLS handshake
	StageRequest              // Prepare, then the Request is sent
	StageReply                // the Reply arrives
	StageConfirm              // Establish, which sends the first message
	StageReady                // run by the caller
)

// A StageTrace bounds and times the stages of one set-up. Enter may block; its error ends the
// set-up. Leave follows each Enter that has returned no error, with the error of the stage.
type StageTrace struct {
	Enter func(ctx context.Context, s Stage) error
	Leave func(s Stage, err error)
}

// String names the stage.
func (s Stage) String() string {
	if names := [...]string{"QP", "dial", "secure", "request", "reply", "confirm", "ready"}; int(s) < len(names) {
		return names[s]
	}
	return "unknown stage"
}

// Traced returns a StageTrace that passes stages as the user's type S. Either function may be nil.
// as converts errors of this package into errors of the user.
func Traced[S ~uint8](enter func(ctx context.Context, s S) error, leave func(s S, err error), as func(error) error) (t StageTrace) {
	if enter != nil {
		t.Enter = func(ctx context.Context, s Stage) error { return enter(ctx, S(s)) }
	}
	if leave != nil {
		t.Leave = func(s Stage, err error) { leave(S(s), as(err)) }
	}
	return t
}

// Run runs a stage of the caller.
func (t StageTrace) Run(ctx context.Context, s Stage, run func() error) error {
	at := stages{trace: t}
	err := at.enter(ctx, s)
	if err == nil {
		err = run()
		at.leave(err)
	}
	return err
}

// stages records the progress of one set-up. One goroutine uses it.
type stages struct {
	trace StageTrace
	at    Stage
	in    bool
}

// begun reports whether a stage was entered.
func (s *stages) begun() bool { return s.at > StageQP }

// enter leaves the current stage, and enters the next one.
func (s *stages) enter(ctx context.Context, next Stage) error {
	s.leave(nil)
	if s.trace.Enter != nil {
		if err := s.trace.Enter(ctx, next); err != nil {
			return err
		}
	}
	s.at, s.in = next, true
	return nil
}

// leave leaves the current stage, if there is one, with its error.
func (s *stages) leave(err error) {
	if s.in && s.trace.Leave != nil {
		s.trace.Leave(s.at, err)
	}
	s.in = false
}
