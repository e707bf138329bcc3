package regionkey

import "encoding/binary"

// AADSize is how long an AAD is when it is written.
const AADSize = 64

// An AAD says what sealed data is for. It is not sent, since both sides know it: data that came
// for another operation cannot be opened.
type AAD struct {
	Op         OpType
	Dir, Suite uint8
	Region     uint64
	Epoch      Epoch
	Length     uint32 // of the operation
	Offset     uint64 // of the operation, in the region
	OpID       uint64
	DataCtr    uint64
	Salt       [16]byte // that the server has drawn for a write; zero for reads
}

// Append appends the AADSize octets of it.
func (a *AAD) Append(b []byte) []byte {
	b = append(b, 'R', 'M', 'A', 'D', 1, uint8(a.Op), a.Dir, a.Suite)
	b = binary.BigEndian.AppendUint64(b, a.Region)
	b = binary.BigEndian.AppendUint32(b, uint32(a.Epoch))
	b = binary.BigEndian.AppendUint32(b, a.Length)
	b = binary.BigEndian.AppendUint64(b, a.Offset)
	b = binary.BigEndian.AppendUint64(b, a.OpID)
	b = binary.BigEndian.AppendUint64(b, a.DataCtr)
	return append(b, a.Salt[:]...)
}
