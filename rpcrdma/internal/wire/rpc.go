package wire

import (
	"encoding/binary"
	"errors"
)

// CallLen is the length of the shortest RPC call (RFC 5531 section 9): six words, and two empty opaque_auths.
const CallLen = 40

// ErrRPC is the error of a message that is no RPC call.
var ErrRPC = errors.New("rpcrdma: not an RPC call")

// A CallHeader is what the transport looks at of an RPC call.
type CallHeader struct{ XID, Program, Version, Procedure uint32 }

// Parse reads the beginning of an RPC call.
func (c *CallHeader) Parse(msg []byte) error {
	const typeCall = 0
	if len(msg) < CallLen || binary.BigEndian.Uint32(msg[4:]) != typeCall {
		return ErrRPC
	}
	c.XID, c.Program = binary.BigEndian.Uint32(msg), binary.BigEndian.Uint32(msg[12:])
	c.Version, c.Procedure = binary.BigEndian.Uint32(msg[16:]), binary.BigEndian.Uint32(msg[20:])
	return nil
}

// Padded is the length of an opaque with its pad.
func Padded[T int | uint64](n T) T { return (n + 3) &^ 3 }
