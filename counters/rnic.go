package counters

// RNIC counts what an RNIC and all of its QPs have done.
type RNIC struct {
	// Paths holds the counts of QPs by QP.Path, in the order of these names. Only the program determines how many there are.
	Paths []Path `json:"paths"`
	// Terminates counts the QPs that have ended by a Terminate.
	Terminates []Terminate `json:"terminates"`

	CQOverflows   uint64 `json:"cq_overflows"`   // times that a CQ began to lose completions
	EventsDropped uint64 `json:"events_dropped"` // see iwarp.RNIC.EventsDropped

	// Refused counts the connections of initiators that were refused here, and Failed the connections of this side that were
	// not established. Pending is how many connections are being set up now.
	Refused Setups `json:"setups_refused"`
	Failed  Setups `json:"setups_failed"`
	Pending int    `json:"setups_pending"`
}

// Path counts the QPs that have the same QP.Path.
type Path struct {
	QP // the sums

	Made  uint64 `json:"made"` // QPs that were established
	Live  int    `json:"live"` // QPs that have not ended now
	Ended Ended  `json:"ended"`

	// TCP.Retransmits is a sum that includes the QPs that have ended. The other fields of TCP are about the QPs that are live now: the
	// means of RTT and RTTVar, and the sums of the rest. TCPs is the number of QPs now for which the kernel reports these fields.
	TCP  TCP `json:"tcp"`
	TCPs int `json:"tcp_connections"`

	// Latency has one element for each operation that has succeeded at least once: the time from PostSend until its
	// completion. It is empty without iwarp.Config.Latency.
	Latency []Latency `json:"latency,omitempty"`
}

// Terminate counts the Terminates with one code (RFC 6580 section 3) that were received, or that this side had to send, even if
// it could no longer do so.
type Terminate struct {
	Layer  uint8  `json:"layer"`
	Type   uint8  `json:"type"`
	Code   uint8  `json:"code"`
	Known  bool   `json:"known"`  // false: counts all codes that no RFC defines, without their numbers
	Remote bool   `json:"remote"` // received
	Count  uint64 `json:"count"`
}

// An End is how a QP has ended.
type End uint8

// The kinds of end, as the Event of each reports them.
const (
	Closed End = iota
	Terminated
	TerminateReceived
	ConnectionLost
	Aborted
	BadClose

	Ends = 6 // how many there are
)

var endNames = [Ends]string{"closed", "terminated", "terminate_received", "connection_lost", "aborted", "bad_close"}

// String names the end in lower case, with underscores.
func (e End) String() string { return endNames[e] }

// Ended counts QPs that have ended, by End.
type Ended [Ends]uint64

// A Cause is the cause why a connection was not established.
type Cause uint8

// The causes.
const (
	CauseNotAdmitted    Cause = iota // by ListenConfig.Admit
	CauseTimeout                     // the time for the set-up was over
	CauseNoProgress                  // the initiator sent nothing for too long
	CauseEvicted                     // it made room for a newer one
	CauseAuthentication              // by the Authenticator
	CauseTLS                         // the TLS handshake has failed, or one side uses TLS and the other does not
	CauseMalformed                   // what came is not MPA
	CauseConnection                  // there was no connection, or it was lost
	CauseRejected                    // by the application
	CauseOther

	Causes = 10 // how many there are
)

var causeNames = [Causes]string{
	"not_admitted", "timeout", "no_progress", "evicted", "authentication", "tls", "malformed", "connection", "rejected", "other",
}

// String names the cause in lower case, with underscores.
func (c Cause) String() string { return causeNames[c] }

// Setups counts connections that were not established, by Cause.
type Setups [Causes]uint64
