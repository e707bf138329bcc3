package op

import "time"

// A Type is the type of a message, with the number that it has on the wire.
type Type uint8

// The types.
const (
	TypeHello Type = 1 + iota
	TypeOpenReq
	TypeOpenRep
	TypeReadReq
	TypeReadDone
	TypeWriteReq
	TypePull
	TypeData
	TypeWriteDone
	TypeStatus
	TypeRekeyReq
	TypeRekeyDone
)

// A Message is what the machines know about a received message. Its octets were parsed and its outer
// tag was checked; the fields that the machines need are here.
type Message struct {
	Type  Type
	Op    ID
	Class Class
	// Length is the number of octets that the operation moves, in all messages that contain it.
	Length uint32

	// Invalidated says which STag the message has invalidated: that of the sink or source of
	// operation Op in this role, none if it is NoRole, and any other STag if it is OtherRole.
	Invalidated Role

	// Source is set in a WRITE_REQ that names a source, and in a PULL that names no sink: the
	// server reads the octets itself, which it does in suite 0.
	Source bool

	// Verdict says whether the server may serve a request: see Judge.
	Verdict Verdict
	// Had is set in a request whose Verdict is RemoteAuth if the client had the key for it until the region got another
	// key, or was closed: then it does not guess.
	Had bool
	// TTL is how long after its receipt a READ_REQ may be answered.
	TTL time.Duration

	// Salt and Timeout are of a PULL; Salt is of a WRITE_DONE too.
	Salt    [16]byte
	Timeout time.Duration

	// Code, Reason and RetryAfter are of a STATUS.
	Code       uint16
	Reason     Reason
	RetryAfter time.Duration
}

// Role returns which machine the message is for: the Client or the Server of this side. For HELLO
// and unknown types, it is NoRole.
//
// A STATUS is either the server's answer to a request, or the client's answer to a PULL that came
// too late. It invalidates the STag that the request or the PULL has named, which shows which one
// it answers. If it invalidates none, TooLate shows that it is from a client: a server sends TooLate
// only for a read, which always has a sink.
func (m *Message) Role() Role {
	switch m.Type {
	case TypeOpenRep, TypeReadDone, TypePull, TypeWriteDone, TypeRekeyDone:
		return ClientRole
	case TypeOpenReq, TypeReadReq, TypeWriteReq, TypeData, TypeRekeyReq:
		return ServerRole
	case TypeStatus:
		switch {
		case m.Invalidated == ClientRole, m.Invalidated == ServerRole:
			return m.Invalidated
		case Outcome(m.Code) == NACK && m.Reason == TooLate:
			return ServerRole
		}
		return ClientRole
	default:
		return NoRole
	}
}

// names reports whether a request names an STag, which the answer invalidates.
func (m *Message) names() bool { return m.Type == TypeReadReq || m.Source }

// kind returns the kind of operation that a request is for.
func (m *Message) kind() (Kind, bool) {
	switch m.Type {
	case TypeOpenReq:
		return Open, true
	case TypeReadReq:
		return Read, true
	case TypeWriteReq:
		return Write, true
	case TypeRekeyReq:
		return Rekey, true
	default:
		return 0, false
	}
}

// answers reports whether the message may be an answer to a request for an operation of that kind.
func (m *Message) answers(k Kind) bool {
	switch m.Type {
	case TypeOpenRep:
		return k == Open
	case TypeReadDone:
		return k == Read
	case TypePull, TypeWriteDone:
		return k == Write
	case TypeRekeyDone:
		return k == Rekey
	default:
		return m.Type == TypeStatus
	}
}
