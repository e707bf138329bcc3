package cm

import (
	"fmt"
	"strings"
	"time"

	"github.com/goiwarp/iwarp"
)

// A Target is a connection that is to be set up.
type Target struct {
	Network, Addr string          // as for [iwarp.RNIC.Dial]
	QP            *iwarp.QPConfig // nil: that of the options
	// Timeout bounds the set-up, its attempts and the waiting between them; 0: that of the
	// options; negative: there is none. The time in which the target waits for its host, for
	// the window, or for room in a stage, does not count.
	Timeout time.Duration
	Tag     any // the caller's; the package does not look at it
}

// A Stage is a part of the set-up of a connection. They follow one another in this order.
type Stage uint8

// The stages: that of this package, and those of [iwarp.SetupStage].
const (
	StageResolve Stage = iota // the name of the host is looked up
	StageQP
	StageDial
	StageSecure
	StageRequest
	StageReply
	StageConfirm
	StageReady
	numStages = int(StageReady) + 1
)

// stageOf is what a stage of Dial is to this package.
func stageOf(s iwarp.SetupStage) Stage { return Stage(s) + StageQP }

// String names the stage.
func (s Stage) String() string {
	if s == StageResolve {
		return "resolve"
	}
	return iwarp.SetupStage(s - StageQP).String()
}

// A Result is what has become of a [Target].
type Result struct {
	QP       *iwarp.QP // established, and the caller's from now on; nil if Err is not
	Err      error     // a *[SetupError]
	Stage    Stage     // that was entered last: the one that has failed, or StageReady
	Attempts int       // that were begun
	// Times is how long each stage of the last attempt took, without the waiting for room in it.
	Times [8]time.Duration
	// Elapsed is how long all took since the target was pulled, the waiting included.
	Elapsed time.Duration
}

// A SetupError tells which set-up has failed, and in which stage.
type SetupError struct {
	Target  Target
	Stage   Stage
	Attempt int // the last one, counted from 1; 0: it was not begun
	Err     error
}

func (e *SetupError) Error() string {
	s := fmt.Sprintf("cm: set up %s %s: stage %v", e.Target.Network, e.Target.Addr, e.Stage)
	if e.Attempt > 1 {
		s += fmt.Sprintf(", attempt %d", e.Attempt)
	}
	return s + ": " + plain(e.Err)
}

// Unwrap returns the cause.
func (e *SetupError) Unwrap() error { return e.Err }

// plain is the text of an error without the name of a package in front.
func plain(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "cm: "), "iwarp: ")
}
