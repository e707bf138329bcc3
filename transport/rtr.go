package transport

import "strings"

// An RTR is a set of ready-to-receive messages: the empty ones with which an initiator may
// open a connection (RFC 6581 section 9.2).
type RTR uint8

// The kinds of RTR.
const (
	RTRSend  RTR = 1 << iota // takes a posted receive of the responder
	RTRWrite                 // leaves no trace
	RTRRead                  // takes one slot of the responder's IRD until it is answered
)

// String names the kinds of the set.
func (r RTR) String() string {
	var names []string
	for _, k := range []struct {
		kind RTR
		name string
	}{{RTRSend, "Send"}, {RTRWrite, "Write"}, {RTRRead, "Read"}} {
		if r&k.kind != 0 {
			names = append(names, k.name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, "|")
}
