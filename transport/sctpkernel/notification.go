package sctpkernel

import "encoding/binary"

// The notifications that a socket subscribes to (RFC 6458 section 6.1).
const (
	notifyAssociation     = 0x8001 // SCTP_ASSOC_CHANGE
	notifyPartialDelivery = 0x8006 // SCTP_PARTIAL_DELIVERY_EVENT
	notifyAdaptation      = 0x8007 // SCTP_ADAPTATION_INDICATION
)

// The states of an SCTP_ASSOC_CHANGE.
const (
	stateUp          = 0 // SCTP_COMM_UP
	stateRestart     = 2 // SCTP_RESTART
	stateShut        = 3 // SCTP_SHUTDOWN_COMP
	stateCannotStart = 4 // SCTP_CANT_STR_ASSOC
)

// A notification is what the kernel reports about an association, in the byte order of the
// machine:
//
//	type (2) | flags (2) | length (4) |
//	  of an association: state (2) | error (2) | outbound (2) | inbound streams (2) | id (4)
//	  of an adaptation:  indication (4) | id (4)
type notification []byte

const (
	associationSize = 20
	adaptationSize  = 16
)

// kind returns the type of the notification, or 0 if it is truncated.
func (n notification) kind() int {
	if len(n) < 8 {
		return 0
	}
	kind := int(binary.NativeEndian.Uint16(n))
	if kind == notifyAssociation && len(n) < associationSize || kind == notifyAdaptation && len(n) < adaptationSize {
		return 0
	}
	return kind
}

// state returns the state in a notification of an association.
func (n notification) state() int { return int(binary.NativeEndian.Uint16(n[8:])) }

// pairs returns how many streams an association has in each direction.
func (n notification) pairs() int {
	return int(min(binary.NativeEndian.Uint16(n[12:]), binary.NativeEndian.Uint16(n[14:])))
}

// indication returns the indication in a notification of an adaptation.
func (n notification) indication() uint32 { return binary.NativeEndian.Uint32(n[8:]) }
