package cm

import (
	"fmt"
	"strings"
	"time"

	"github.com/goiwarp/iwarp"
)

// A Target is a connection to set up.
type Target struct {
	Network, Addr string          // as for [iwarp.RNIC.Dial]
	QP            *iwarp.QPConfig // nil: that of the options
	// Timeout bounds the set-up, including its attempts and the delays between them; 0: that of
	// the options; negative: no limit. The time that the target waits for its host, for the
	// window, or for room in a stage does not count.
	Timeout time.Duration
	Tag     any // the caller's; not used by this package
}

// A Stage is a part of the set-up of a connection.
type Stage uint8

// The stages, in order: StageResolve of this package, and the stages of [iwarp.SetupStage].
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

// stageOf returns the Stage that corresponds to a stage of Dial.
func stageOf(s iwarp.SetupStage) Stage { return Stage(s) + StageQP }

// String returns the name of the stage.
func (s Stage) String() string {
	if s == StageResolve {
		return "resolve"
	}
	return iwarp.SetupStage(s - StageQP).String()
}

// A Result is the result for a [Target].
type Result struct {
	QP       *iwarp.QP // established; it belongs to the caller; nil if Err is not nil
	Err      error     // a *[SetupError], or nil
	Stage    Stage     // the last stage entered: the stage that failed, or StageReady
	Attempts int       // attempts begun
	// Times is how long each stage of the last attempt took, without the wait for room in it.
	Times [8]time.Duration
	// Elapsed is the time since the target was pulled, including all waits.
	Elapsed time.Duration
}

// A SetupError reports which set-up failed, and in which stage.
type SetupError struct {
	Target  Target
	Stage   Stage
	Attempt int // the last attempt, counted from 1; 0: none was begun
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

// plain returns the text of an error without a package name in front.
func plain(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "cm: "), "iwarp: ")
}
