package rdmap

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/names"
)

// An Opcode is the type of a message (RFC 5040 section 4.1, figure 4). It has 4 bits.
type Opcode uint8

// The opcodes of RFC 5040 and RFC 7306. Other opcodes belong to an [Extension], like 0xc and 0xd of package commit, or are
// unknown. The only ones that are free, 0xe and 0xf, are unknown in this package's tests.
const (
	OpWrite                   Opcode = 0x0
	OpReadRequest             Opcode = 0x1
	OpReadResponse            Opcode = 0x2
	OpSend                    Opcode = 0x3
	OpSendInvalidate          Opcode = 0x4
	OpSendSolicited           Opcode = 0x5
	OpSendSolicitedInvalidate Opcode = 0x6
	OpTerminate               Opcode = 0x7
	OpImmediate               Opcode = 0x8
	OpImmediateSolicited      Opcode = 0x9
	OpAtomicRequest           Opcode = 0xa
	OpAtomicResponse          Opcode = 0xb

	numOpcodes = 16
)

// The untagged queues (RFC 5040 section 4.1, figure 4; RFC 7306 section 4.2).
const (
	QNSend      ddp.QN = 0 // Sends and Immediate Data
	QNRequest   ddp.QN = 1 // Read Requests, Atomic Requests, and the requests of extensions
	QNTerminate ddp.QN = 2
	QNResponse  ddp.QN = 3 // Atomic Responses, and the responses of extensions
)

var opcodeNames = [...]string{
	OpWrite:                   "RDMA Write",
	OpReadRequest:             "RDMA Read Request",
	OpReadResponse:            "RDMA Read Response",
	OpSend:                    "Send",
	OpSendInvalidate:          "Send with Invalidate",
	OpSendSolicited:           "Send with Solicited Event",
	OpSendSolicitedInvalidate: "Send with Solicited Event and Invalidate",
	OpTerminate:               "Terminate",
	OpImmediate:               "Immediate Data",
	OpImmediateSolicited:      "Immediate Data with Solicited Event",
	OpAtomicRequest:           "Atomic Request",
	OpAtomicResponse:          "Atomic Response",
}

func (o Opcode) String() string { return names.Of(o, opcodeNames[:], "opcode %#x") }

// IsSend reports whether o is one of the four kinds of Send.
func (o Opcode) IsSend() bool { return o >= OpSend && o <= OpSendSolicitedInvalidate }

// Invalidates reports whether o carries an STag to invalidate.
func (o Opcode) Invalidates() bool { return o == OpSendInvalidate || o == OpSendSolicitedInvalidate }

// IsImmediate reports whether o is one of the two kinds of Immediate Data.
func (o Opcode) IsImmediate() bool { return o == OpImmediate || o == OpImmediateSolicited }

// Solicited reports whether o requests an event at the receiver.
func (o Opcode) Solicited() bool {
	return o == OpSendSolicited || o == OpSendSolicitedInvalidate || o == OpImmediateSolicited
}

// The RDMAP control octet, the first octet of DDP's RsvdULP in every segment (RFC
// 5040 section 4.1):
//
//	 0   1   2   3   4   5   6   7
//	+---+---+---+---+---+---+---+---+
//	|  RV   | Rsv   |    OpCode     |
//	+---+---+---+---+---+---+---+---+
//
// Rsv is sent as zero and ignored on receipt.
const (
	controlVersion = 0xc0
	controlOpcode  = 0x0f

	versionIETF = 0x40 // RV 01b: the version of RFC 5040
)

// control returns the control octet for o.
func (o Opcode) control() uint8 { return versionIETF | uint8(o) }

// opcodeOf returns the opcode of a control octet.
func opcodeOf(control uint8) Opcode { return Opcode(control & controlOpcode) }
