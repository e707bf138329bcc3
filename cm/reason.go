package cm

import "strconv"

// A Reason is why a connection is refused. It goes into the log, and not to the peer.
type Reason uint8

// The reasons, in the order of the checks.
const (
	ReasonSourceClosed Reason = 1 + iota // far more failures of the source than allowed: no reply
	ReasonSourceBlocked
	ReasonHalfOpen // the limit of set-ups under way
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
	ReasonStore // it failed
	ReasonPublicKey
	ReasonPolicy // of Authorize or ExpectServer
	ReasonBadFirst
	ReasonNoFirst   // the connection ended without the first message
	ReasonDowngrade // a Reply with another suite or mode than asked for
	ReasonNotJudged // Authorize has not judged in time

	reasons = int(ReasonNotJudged) + 1
)

// reasonTexts says for each reason what it is, at which stage it is found, and which code it
// has on the wire. Charged ones cost the source a token.
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

// Stage names the check that fails for this reason: source, limits, parse, mode, key,
// freshness, policy or confirm.
func (r Reason) Stage() string { return reasonTexts[int(r)%reasons].stage }

// code is what the peer learns of the reason.
func (r Reason) code() Code { return reasonTexts[int(r)%reasons].code }

// charged reports whether the reason is a failure of the source, which its bucket pays for.
func (r Reason) charged() bool { return reasonTexts[int(r)%reasons].charged }
