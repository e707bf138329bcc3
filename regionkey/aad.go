package regionkey

import "encoding/binary"

// AADSize is the encoded length of an AAD.
const AADSize = 64

// An AAD identifies the operation that sealed data belongs to. It is not sent, because both sides know
// it. Data of another operation cannot be opened with it.
type AAD struct {
	Op         OpType
	Dir, Suite uint8
	Region     uint64
	Epoch      Epoch
	Length     uint32 // of the operation
	Offset     uint64 // of the operation, in the region
	OpID       uint64
	DataCtr    uint64
	Salt       [16]byte // chosen by the server for a write; zero for reads
}

// Append appends the encoded AAD, AADSize octets, to b.
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
