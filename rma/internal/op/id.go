package op

// An ID identifies an operation on a connection: slot 16 bits, sequence 48 bits. It is never used
// again, and never 0.
type ID uint64

// maxSequence is the largest sequence number.
const maxSequence = 1<<48 - 1

// NewID returns the ID of an operation.
func NewID(slot uint16, sequence uint64) ID {
	return ID(uint64(slot)<<48 | sequence&maxSequence)
}

// Slot returns the slot of the operation.
func (o ID) Slot() uint16 { return uint16(o >> 48) }

// Sequence returns the sequence number of the operation.
func (o ID) Sequence() uint64 { return uint64(o) & maxSequence }

// A Kind is what an operation does.
type Kind uint8

// The kinds.
const (
	Open  Kind = iota // requests the keys of a region
	Read              // moves octets of a region to the client
	Write             // moves octets of the client to a region
	Rekey             // gives a region its next epoch
)

// A Class is how urgent an operation is: Latency or Bulk, as on the wire.
type Class uint8

// The classes.
const (
	Latency Class = iota
	Bulk

	classes = 2
)

// A Role is a side of an operation.
type Role uint8

// The roles.
const (
	NoRole Role = iota
	ClientRole
	ServerRole
	// OtherRole stands for an STag of no operation, or of another operation.
	OtherRole
)
