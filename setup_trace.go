package iwarp

import (
	"context"

	"github.com/goiwarp/iwarp/internal/setup"
)

// A SetupStage is a part of the set-up of a connection by [RNIC.Dial] or [RNIC.Client]. They
// follow one another in this order. A connection without TLS has no StageSecure, one of Client
// no StageDial; the second attempt with revision 1, or of an [Authenticator], begins again with
// StageDial.
type SetupStage uint8

// The stages.
const (
	StageQP      = SetupStage(setup.StageQP)      // the QP is made
	StageDial    = SetupStage(setup.StageDial)    // the connection of TCP or SCTP is made
	StageSecure  = SetupStage(setup.StageSecure)  // the handshake of TLS
	StageRequest = SetupStage(setup.StageRequest) // QPConfig.Setup runs, and the Request leaves
	StageReply   = SetupStage(setup.StageReply)   // the Reply comes
	StageConfirm = SetupStage(setup.StageConfirm) // the first message leaves
	StageReady   = SetupStage(setup.StageReady)   // the QP is established
)

// String names the stage.
func (s SetupStage) String() string { return setup.Stage(s).String() }

// A SetupTrace bounds and times the stages of one set-up. Its functions are called by the
// goroutine that dials; either may be nil. (QPConfig.Trace is another thing: a pcap.)
type SetupTrace struct {
	// Enter is called before a stage begins. It may block, until there is room in the stage for
	// example; ctx is that of the set-up. Its error ends the set-up, which returns it.
	Enter func(ctx context.Context, s SetupStage) error
	// Leave is called when a stage that was entered has ended, with its error.
	Leave func(s SetupStage, err error)
}

// stages is the trace of what internal/setup does.
func (qc *QPConfig) stages() setup.StageTrace {
	if qc == nil || qc.SetupTrace == nil {
		return setup.StageTrace{}
	}
	return setup.Traced(qc.SetupTrace.Enter, qc.SetupTrace.Leave, rejection)
}
