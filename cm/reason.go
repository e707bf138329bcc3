package cm

import "strconv"

// A Reason is why a connection is refused. It is logged, and not sent to the peer.
type Reason uint8

// The reasons, in the order of the checks.
const (
	ReasonSourceClosed Reason = 1 + iota // far more failures of the source than allowed: no reply
	ReasonSourceBlocked
	ReasonHalfOpen // a limit of set-ups in progress is reached
	ReasonNoBlock  // the start-up frame is not authenticated at all
	ReasonMalformed
	ReasonVersion  // an unknown version or suite, or a suite below MinSuite
	ReasonMode     // mode B is not accepted
	ReasonBlackout // mode A is not accepted, or not at present
	ReasonBudget   // of HMACs
	ReasonUnknownKey
	ReasonBadMAC
	ReasonKeyEarly
	ReasonKeyRetired
	ReasonStale
	ReasonReplay
	ReasonCacheFull
	ReasonStore // the CacheStore failed
	ReasonPublicKey
	ReasonPolicy // refused by Authorize or ExpectServer
	ReasonBadFirst
	ReasonNoFirst   // the connection ended without the first message
	ReasonDowngrade // a Reply with a suite or mode other than that of the Request
	ReasonNotJudged // Authorize did not decide in time

	reasons = int(ReasonNotJudged) + 1
)

// reasonTexts holds the text of each reason, the stage at which it is found, and its code on the
// wire. Reasons that are charged cost the source a token.
var reasonTexts = [reasons]struct {
	text    string
	stage   string
	code    Code
	charged bool
}{
	ReasonSourceClosed:  {"source blocked, without a reply", "source", CodeRefused, false},
	ReasonSourceBlocked: {"source blocked", "source", CodeRefused, true},
	ReasonHalfOpen:      {"too many set-ups under way", "limits", CodeBusy, false},
	ReasonNoBlock:       {"not authenticated", "parse", CodeRefused, true},
	ReasonMalformed:     {"malformed", "parse", CodeRefused, true},
	ReasonVersion:       {"unknown or weak version", "parse", CodeVersion, true},
	ReasonMode:          {"mode not accepted", "mode", CodeRefused, true},
	ReasonBlackout:      {"mode A not available", "mode", CodeTryModeB, false},
	ReasonBudget:        {"too many HMACs", "limits", CodeBusy, false},
	ReasonUnknownKey:    {"unknown key", "key", CodeRefused, true},
	ReasonBadMAC:        {"wrong MAC", "key", CodeRefused, true},
	ReasonKeyEarly:      {"key not valid yet", "key", CodeRefused, true},
	ReasonKeyRetired:    {"key retired", "key", CodeKeyRetired, true},
	ReasonStale:         {"stale time", "freshness", CodeRefused, true},
	ReasonReplay:        {"replay", "freshness", CodeRefused, true},
	ReasonCacheFull:     {"replay cache full", "freshness", CodeRefused, false},
	ReasonStore:         {"replay store failed", "freshness", CodeRefused, false},
	ReasonPublicKey:     {"bad public key", "key", CodeRefused, true},
	ReasonPolicy:        {"identity not accepted", "policy", CodeRefused, true},
	ReasonBadFirst:      {"wrong first message", "confirm", CodeRefused, true},
	ReasonNoFirst:       {"no first message", "confirm", CodeRefused, true},
	ReasonDowngrade:     {"another suite or mode than asked for", "parse", CodeRefused, false},
	ReasonNotJudged:     {"not judged in time", "policy", CodeRefused, false},
}

func (r Reason) String() string {
	if int(r) >= reasons || reasonTexts[r].text == "" {
		return "reason " + strconv.Itoa(int(r))
	}
	return reasonTexts[r].text
}

// Stage returns the name of the check that fails for this reason: source, limits, parse, mode,
// key, freshness, policy or confirm.
func (r Reason) Stage() string { return reasonTexts[int(r)%reasons].stage }

// code returns what the peer learns about the reason.
func (r Reason) code() Code { return reasonTexts[int(r)%reasons].code }

// charged reports whether the reason is a failure of the source, which costs it a token.
func (r Reason) charged() bool { return reasonTexts[int(r)%reasons].charged }
