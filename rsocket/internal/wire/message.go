package wire

import "fmt"

// MessageSize is the length of every message in octets.
const MessageSize = 4

// An Op is the kind of a message.
type Op uint8

const (
	OpData     Op = 0 // octets were written
	OpSGL      Op = 4 // the new limit of credits; a slot may have been written
	OpIOMapSGL Op = 6 // an entry of the iomap was written
	OpCtrl     Op = 7
)

// The numbers that an OpCtrl carries.
const (
	CtrlDisconnect = 0
	CtrlKeepAlive  = 1
	CtrlShutdown   = 2
)

// MaxData is the greatest number that a message carries.
const MaxData = 1<<29 - 1

// A Message is the contents of one Send: the op in bits 31 to 29, and a number.
type Message uint32

// NewMessage returns a message. data is MaxData at most.
func NewMessage(op Op, data uint32) Message { return Message(uint32(op)<<29 | data&MaxData) }

// Op returns the kind of the message.
func (m Message) Op() Op { return Op(m >> 29) }

// Data returns the number of the message.
func (m Message) Data() uint32 { return uint32(m) & MaxData }

// Append appends the message.
func (m Message) Append(b []byte, o Order) []byte { return o.appendUint32(b, uint32(m)) }

// ParseMessage parses a message, which must have exactly four octets.
func ParseMessage(b []byte, o Order) (Message, error) {
	if len(b) != MessageSize {
		return 0, fmt.Errorf("a message of %d octets in place of %d", len(b), MessageSize)
	}
	return Message(o.uint32(b)), nil
}

func (m Message) String() string {
	switch m.Op() {
	case OpData:
		return fmt.Sprintf("DATA %d", m.Data())
	case OpSGL:
		return fmt.Sprintf("SGL %d", m.Data())
	case OpIOMapSGL:
		return fmt.Sprintf("IOMAP_SGL %d", m.Data())
	case OpCtrl:
		return fmt.Sprintf("CTRL %d", m.Data())
	}
	return fmt.Sprintf("op %d, %d", m.Op(), m.Data())
}
