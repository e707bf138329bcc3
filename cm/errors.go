package cm

import (
	"errors"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/names"
)

// An Error is the reason why this side does not accept its peer. It matches [iwarp.ErrAuth], and
// Err. The peer learns only the [Code] of the refusal.
type Error struct {
	Reason Reason
	Err    error // details; nil: none
}

func (e *Error) Error() string {
	s := "cm: " + e.Reason.String()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns iwarp.ErrAuth and, if it is not nil, Err.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{iwarp.ErrAuth}
	}
	return []error{iwarp.ErrAuth, e.Err}
}

// A Refusal is the error of an initiator that the peer refuses. It matches [iwarp.ErrAuth].
// Any host on the path can forge a refusal that is not Signed, so it is only a hint.
type Refusal struct {
	Code    Code
	KeyHint uint64 // with CodeKeyRetired: the peer's primary key; 0: unknown
	Signed  bool   // and the signature was right

	retry iwarp.Authenticator
}

func (r *Refusal) Error() string { return "cm: the peer refuses the connection: " + r.Code.String() }

// Unwrap returns iwarp.ErrAuth.
func (r *Refusal) Unwrap() error { return iwarp.ErrAuth }

// Retry returns the Authenticator for one more try, which initiates in mode B, if the peer has
// answered a Request of mode A with CodeTryModeB, and nil otherwise. Retry returns nil for a
// Refusal of that try.
func (r *Refusal) Retry() iwarp.Authenticator { return r.retry }

// Busy reports whether the peer has too many set-ups in progress: [DefaultRetry] tries again.
func (r *Refusal) Busy() bool { return r.Code == CodeBusy }

// A Code is the reason that a refusal gives to the initiator.
type Code uint8

const (
	// CodeRefused stands for every failure of authentication.
	CodeRefused Code = 1 + iota
	// CodeTryModeB means that mode A is not available at the responder at present.
	CodeTryModeB
	// CodeVersion means that the responder does not know the version or the suite, or that the
	// suite is below its minimum.
	CodeVersion
	// CodeBusy means that a limit is reached.
	CodeBusy
	// CodeKeyRetired means that the key is past its NotAfter. It is signed.
	CodeKeyRetired
	// CodeApplication marks a refusal of the application. It is signed. The initiator gets an
	// iwarp.RejectError.
	CodeApplication
)

var codeNames = [...]string{
	CodeRefused: "REFUSED", CodeTryModeB: "TRY_MODE_B", CodeVersion: "VERSION", CodeBusy: "BUSY", CodeKeyRetired: "KEY_RETIRED",
	CodeApplication: "APPLICATION",
}

func (c Code) String() string { return names.Of(c, codeNames[:], "code %d") }

// signed reports whether refusals with this code are signed.
func (c Code) signed() bool { return c == CodeKeyRetired || c == CodeApplication }

// Errors of calls that are wrong or premature, and of blocked sources.
var (
	errOrder    = errors.New("cm: a method of the session is called out of order")
	errNotReady = errors.New("cm: the peer is not authenticated yet")
	errNoData   = errors.New("cm: private data of the application with a refusal that is not its own")
	errNoReply  = errors.New("cm: the source is blocked: the connection is closed without a reply")
)
