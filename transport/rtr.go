package transport

import "strings"

// An RTR is a set of kinds of ready-to-receive message: the empty message that an initiator
// may send first on a connection (RFC 6581 section 9.2).
type RTR uint8

// The kinds of RTR.
const (
	RTRSend  RTR = 1 << iota // an empty Send; it consumes a posted receive of the responder
	RTRWrite                 // an empty RDMA Write; it consumes nothing
	RTRRead                  // an empty RDMA Read; it occupies one slot of the responder's IRD until it is answered
)

// String returns the names of the kinds in the set.
func (r RTR) String() string {
	var names []string
	for i, name := range [...]string{"Send", "Write", "Read"} {
		if r&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, "|")
}
