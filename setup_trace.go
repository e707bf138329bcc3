package iwarp

import (
	"context"

	"github.com/goiwarp/iwarp/internal/setup"
)

// A SetupStage is a stage of the set-up of a connection by [RNIC.Dial] or [RNIC.Client]. The
// stages follow one another in the order below. A connection without TLS has no StageSecure, and
// one of Client has no StageDial. The second attempt with revision 1, or of an [Authenticator],
// begins again with StageDial.
type SetupStage uint8

// The stages.
const (
	StageQP      = SetupStage(setup.StageQP)      // the QP is created
	StageDial    = SetupStage(setup.StageDial)    // the TCP or SCTP connection is made
	StageSecure  = SetupStage(setup.StageSecure)  // the TLS handshake
	StageRequest = SetupStage(setup.StageRequest) // QPConfig.Setup runs, and the Request is sent
	StageReply   = SetupStage(setup.StageReply)   // the Reply arrives
	StageConfirm = SetupStage(setup.StageConfirm) // the first message is sent
	StageReady   = SetupStage(setup.StageReady)   // the QP is established
)

// String returns the name of the stage.
func (s SetupStage) String() string { return setup.Stage(s).String() }

// A SetupTrace bounds and times the stages of one set-up. Its functions are called by the
// goroutine that dials; either may be nil. (QPConfig.Trace is unrelated: it receives a pcap.)
type SetupTrace struct {
	// Enter is called before a stage begins. It may block, for example until fewer set-ups are in
	// the stage; ctx is that of the set-up. Its error ends the set-up, which returns it.
	Enter func(ctx context.Context, s SetupStage) error
	// Leave is called when a stage that was entered has ended, with its error.
	Leave func(s SetupStage, err error)
}

// stages returns the trace in the form that package setup uses.
func (qc *QPConfig) stages() setup.StageTrace {
	if qc == nil || qc.SetupTrace == nil {
		return setup.StageTrace{}
	}
	return setup.Traced(qc.SetupTrace.Enter, qc.SetupTrace.Leave, rejection)
}
