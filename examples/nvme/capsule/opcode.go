package capsule

import "fmt"

// An Opcode says what a command does. Its meaning depends on the queue, except for OpFabrics, which is the same on
// all queues. Bits 1:0 are the direction of the data.
type Opcode uint8

// Admin commands (Base 2.0, 5).
const (
	OpGetLogPage  Opcode = 0x02
	OpIdentify    Opcode = 0x06
	OpAbort       Opcode = 0x08
	OpSetFeatures Opcode = 0x09
	OpGetFeatures Opcode = 0x0A
	OpAsyncEvent  Opcode = 0x0C
	OpKeepAlive   Opcode = 0x18
)

// Commands of the NVM command set.
const (
	OpFlush       Opcode = 0x00
	OpWrite       Opcode = 0x01
	OpRead        Opcode = 0x02
	OpCompare     Opcode = 0x05
	OpWriteZeroes Opcode = 0x08
	OpDSM         Opcode = 0x09 // Dataset Management
)

// OpFabrics is the opcode of all Fabrics commands, which an FCType distinguishes.
const OpFabrics Opcode = 0x7F

// An FCType says what a Fabrics command does (Fabrics 1.1, 3). Bits 1:0 are the direction of the data.
type FCType uint8

// The types of Fabrics commands.
const (
	FCPropertySet FCType = 0x00
	FCConnect     FCType = 0x01
	FCPropertyGet FCType = 0x04
	FCAuthSend    FCType = 0x05
	FCAuthReceive FCType = 0x06
	FCDisconnect  FCType = 0x08
)

var fcNames = map[FCType]string{
	FCPropertySet: "Property Set",
	FCConnect:     "Connect",
	FCPropertyGet: "Property Get",
	FCAuthSend:    "Authentication Send",
	FCAuthReceive: "Authentication Receive",
	FCDisconnect:  "Disconnect",
}

func (t FCType) String() string {
	if name, ok := fcNames[t]; ok {
		return name
	}
	return fmt.Sprintf("fctype %#02x", uint8(t))
}

// A Direction says which way the data of a command goes.
type Direction uint8

// The directions, as in bits 1:0 of opcodes and of Fabrics command types.
const (
	NoData           Direction = 0
	HostToController Direction = 1
	ControllerToHost Direction = 2
	BothWays         Direction = 3
)
