package wire

import (
	"encoding/binary"
	"errors"
)

// CallLen is the length of the shortest RPC call (RFC 5531 section 9): six words, and two empty opaque_auths.
const CallLen = 40

// Errors of messages that are malformed.
var (
	ErrRPC   = errors.New("rpcrdma: not an RPC call")
	ErrReply = errors.New("rpcrdma: not an RPC reply to the call")
)

const (
	typeCall  = 0
	typeReply = 1
)

// A CallHeader holds the fields of an RPC call that the transport reads.
type CallHeader struct{ XID, Program, Version, Procedure uint32 }

// Parse reads the beginning of an RPC call.
func (c *CallHeader) Parse(msg []byte) error {
	if len(msg) < CallLen || binary.BigEndian.Uint32(msg[4:]) != typeCall {
		return ErrRPC
	}
	c.XID, c.Program = binary.BigEndian.Uint32(msg), binary.BigEndian.Uint32(msg[12:])
	c.Version, c.Procedure = binary.BigEndian.Uint32(msg[16:]), binary.BigEndian.Uint32(msg[20:])
	return nil
}

// CheckReply checks that a message is an RPC reply to the call with that XID.
func CheckReply(msg []byte, xid uint32) error {
	if len(msg) < 8 || binary.BigEndian.Uint32(msg) != xid || binary.BigEndian.Uint32(msg[4:]) != typeReply {
		return ErrReply
	}
	return nil
}

// Padded returns the length of an opaque with its pad.
func Padded[T int | uint64](n T) T { return (n + 3) &^ 3 }
