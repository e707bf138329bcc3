package cm

import (
	"errors"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/names"
)

// An Error is why this side does not accept its peer. It matches [iwarp.ErrAuth], and Err. The
// peer does not learn more of it than the [Code] of the refusal.
type Error struct {
	Reason Reason
	Err    error // the particulars; nil: there are none
}

func (e *Error) Error() string {
	s := "cm: " + e.Reason.String()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap makes the error match iwarp.ErrAuth.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{iwarp.ErrAuth}
	}
	return []error{iwarp.ErrAuth, e.Err}
}

// A Refusal is the error of an initiator whose peer refuses it. It matches [iwarp.ErrAuth].
// A refusal that is not Signed may have been made by any host on the way: it is a hint.
type Refusal struct {
	Code    Code
	KeyHint uint64 // with CodeKeyRetired: the key that the peer would have used; 0: unknown
	Signed  bool   // and the signature was right

	retry iwarp.Authenticator
}

func (r *Refusal) Error() string { return "cm: the peer refuses the connection: " + r.Code.String() }

// Unwrap makes the error match iwarp.ErrAuth.
func (r *Refusal) Unwrap() error { return iwarp.ErrAuth }

// Retry returns the Authenticator for one more try, which initiates in mode B, where the peer
// has answered a Request of mode A with CodeTryModeB; otherwise nil. A Refusal of that try has
// none.
func (r *Refusal) Retry() iwarp.Authenticator { return r.retry }

// Busy reports whether the peer has too many set-ups under way: [DefaultRetry] tries again.
func (r *Refusal) Busy() bool { return r.Code == CodeBusy }

// A Code is what a refusal tells the initiator.
type Code uint8

const (
	// CodeRefused stands for every failure of authentication.
	CodeRefused Code = 1 + iota
	// CodeTryModeB tells that the responder has no mode A at present.
	CodeTryModeB
	// CodeVersion tells that the responder does not know the version or the suite, or that the
	// suite is below its minimum.
	CodeVersion
	// CodeBusy tells that a limit is reached.
	CodeBusy
	// CodeKeyRetired tells, signed, that the key is past its NotAfter.
	CodeKeyRetired
	// CodeApplication comes, signed, with a refusal of the application. The initiator sees it as
	// an iwarp.RejectError.
	CodeApplication
)

var codeNames = [...]string{
	CodeRefused: "REFUSED", CodeTryModeB: "TRY_MODE_B", CodeVersion: "VERSION", CodeBusy: "BUSY", CodeKeyRetired: "KEY_RETIRED",
	CodeApplication: "APPLICATION",
}

func (c Code) String() string { return names.Of(c, codeNames[:], "code %d") }

// signed reports whether refusals with this code are signed.
func (c Code) signed() bool { return c == CodeKeyRetired || c == CodeApplication }

// What a caller did wrong, or asked for too early.
var (
	errOrder    = errors.New("cm: a method of the session is called out of order")
	errNotReady = errors.New("cm: the peer is not authenticated yet")
	errNoData   = errors.New("cm: private data of the application with a refusal that is not its own")
	errNoReply  = errors.New("cm: the source is blocked: the connection is closed without a reply")
)
