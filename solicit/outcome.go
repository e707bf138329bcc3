package solicit

import "github.com/goiwarp/iwarp/internal/names"

// An Outcome is how a granted operation has ended.
type Outcome uint8

const (
	// OK means that the octets arrived. Only this shows how fast the path is.
	OK Outcome = iota
	// Nack means that the peer refused the operation before it sent anything.
	Nack
	// Timeout means that the answer did not come in time.
	Timeout
	// Failed means any other end, which says nothing about the path.
	Failed
)

var outcomeNames = [...]string{OK: "ok", Nack: "nack", Timeout: "timeout", Failed: "failed"}

func (o Outcome) String() string { return names.Of(o, outcomeNames[:], "outcome %d") }
