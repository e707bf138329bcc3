package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/regionkey"
	"github.com/goiwarp/iwarp/rma/internal/op"
)

const (
	version    = 1
	headerSize = 24
	tagSize    = regionkey.TagSize
)

// MaxSize is the length of the longest message.
const MaxSize = 168

// ErrMalformed is the error of a malformed message.
var ErrMalformed = errors.New("rma: malformed message")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}

// A Type is the type of a message.
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

// A layout is what messages of one type have in common.
type layout struct {
	name   string
	size   int
	secret int // encrypted octets in front of the outer tag
	inner  bool
}

var layouts = [...]layout{
	TypeHello:     {name: "HELLO", size: 80},
	TypeOpenReq:   {name: "OPEN_REQ", size: 72},
	TypeOpenRep:   {name: "OPEN_REP", size: 168, secret: 96},
	TypeReadReq:   {name: "READ_REQ", size: 96, inner: true},
	TypeReadDone:  {name: "READ_DONE", size: 56},
	TypeWriteReq:  {name: "WRITE_REQ", size: 96, inner: true},
	TypePull:      {name: "PULL", size: 80},
	TypeData:      {name: "DATA", size: 56},
	TypeWriteDone: {name: "WRITE_DONE", size: 64},
	TypeStatus:    {name: "STATUS", size: 64},
	TypeRekeyReq:  {name: "REKEY_REQ", size: 112, secret: 48, inner: true},
	TypeRekeyDone: {name: "REKEY_DONE", size: 56},
}

func (t Type) known() bool { return t >= TypeHello && t <= TypeRekeyDone }

func (t Type) String() string {
	if !t.known() {
		return fmt.Sprintf("type %d", uint8(t))
	}
	return layouts[t].name
}

// Size returns the length of messages of the type, which must be one of those above.
func (t Type) Size() int { return layouts[t].size }

// A Header is the start of each message.
type Header struct {
	Type  Type // Append sets it
	Class op.Class
	Ctr   uint64 // number of the message
	Op    op.ID  // 0 in a HELLO, and in no other message
}

// begin appends a message that is zero except for its header. It returns the extended slice, and
// the message.
func begin(dst []byte, t Type, h Header) (all, msg []byte) {
	n := t.Size()
	dst = slices.Grow(dst, n)
	all = dst[:len(dst)+n]
	msg = all[len(dst):]
	clear(msg)
	msg[0], msg[1], msg[2] = version, uint8(t), uint8(h.Class)
	binary.BigEndian.PutUint16(msg[4:], uint16(n))
	binary.BigEndian.PutUint64(msg[8:], h.Ctr)
	binary.BigEndian.PutUint64(msg[16:], uint64(h.Op))
	return all, msg
}

// parseHeader reads the header of a message, and checks its length.
func parseHeader(msg []byte) (h Header, err error) {
	if len(msg) < headerSize {
		return h, malformed("%d octets, fewer than a header", len(msg))
	}
	h = Header{
		Type: Type(msg[1]), Class: op.Class(msg[2]),
		Ctr: binary.BigEndian.Uint64(msg[8:]), Op: op.ID(binary.BigEndian.Uint64(msg[16:])),
	}
	n := int(binary.BigEndian.Uint16(msg[4:]))
	switch {
	case msg[0] != version:
		return h, malformed("version %d", msg[0])
	case !h.Type.known():
		return h, malformed("%v", h.Type)
	case len(msg) != h.Type.Size(), len(msg) != n:
		return h, malformed("a %v of %d octets that says %d, where %d are right", h.Type, len(msg), n, h.Type.Size())
	case h.Class > op.Bulk:
		return h, malformed("a %v of class %d", h.Type, h.Class)
	case (h.Op == 0) != (h.Type == TypeHello):
		return h, malformed("a %v for operation %d", h.Type, h.Op)
	}
	return h, nil
}

// is checks that the message, which Open has returned for Parse, is of that type.
func is(msg []byte, t Type) error {
	if len(msg) != t.Size() || Type(msg[1]) != t {
		return malformed("%d octets that are not a %v", len(msg), t)
	}
	return nil
}
