package iwarp

import (
	"github.com/goiwarp/iwarp/internal/names"
	"github.com/goiwarp/iwarp/solicit"
	"github.com/goiwarp/iwarp/stag"
)

// An Op is the operation of a work request or a completion.
type Op uint8

// The operations. Numbers that are not listed are reserved.
const (
	OpSend               Op = 1
	OpSendInvalidate     Op = 2
	OpRDMAWrite          Op = 3
	OpRDMAWriteImm       Op = 4 // an RDMA Write, followed by Immediate Data
	OpRDMARead           Op = 5
	OpRDMAReadInvalidate Op = 6 // the local sink STag is invalidated when it completes
	OpImmediate          Op = 7
	OpFetchAdd           Op = 8
	OpCompareSwap        Op = 9
	OpSwap               Op = 10
	OpLocalInvalidate    Op = 11
	OpRegister           Op = 12 // of an MR that AllocMR has made
	OpBind               Op = 13 // of a memory window
	OpCommit             Op = 14 // makes octets of the peer durable
	OpRecv               Op = 15 // in a WC
	OpRecvImm            Op = 16 // in a WC: the message was Immediate Data
)

// opNames are the names of operations.
var opNames = [...]string{
	OpSend: "Send", OpSendInvalidate: "Send with Invalidate", OpRDMAWrite: "RDMA Write",
	OpRDMAWriteImm: "RDMA Write with Immediate", OpRDMARead: "RDMA Read",
	OpRDMAReadInvalidate: "RDMA Read with local Invalidate", OpImmediate: "Immediate",
	OpFetchAdd: "Fetch and Add", OpCompareSwap: "Compare and Swap", OpSwap: "Swap",
	OpLocalInvalidate: "Local Invalidate", OpRegister: "Register", OpBind: "Bind", OpCommit: "Commit",
	OpRecv: "Receive", OpRecvImm: "Receive of an Immediate",
}

func (o Op) String() string { return names.Of(o, opNames[:], "Op(%d)") }

// takesReceive reports whether o is a message that consumes a receive of the peer.
func (o Op) takesReceive() bool {
	switch o {
	case OpSend, OpSendInvalidate, OpRDMAWriteImm, OpImmediate:
		return true
	default:
		return false
	}
}

// received reports whether o is the Op of a receive's completion.
func (o Op) received() bool { return o == OpRecv || o == OpRecvImm }

// Flags modify a work request, or give details of a completion.
type Flags uint8

const (
	Unsignaled Flags = 1 << iota // no completion unless it fails
	Solicited                    // Send, Immediate: request a solicited event at the peer; in a WC: the message requested one
	ReadFence                    // starts only when all earlier RDMA Reads, atomic operations and Commits have been answered
	LocalFence                   // starts only when all earlier work requests have completed
)

const allFlags = Unsignaled | Solicited | ReadFence | LocalFence

// An SGE is a range of octets in a region: [Off, Off+Len), relative to the region's first
// octet. It is checked when it is posted. See [MR.Slice].
type SGE struct {
	MR       *MR
	Off, Len int
}

// A SendWR is a work request for the send queue. Op determines which fields are used:
//
//	Send                        Local or Inline; Solicited
//	Send with Invalidate        the same, and Invalidate: the peer's STag
//	RDMA Write                  Local or Inline, and Remote
//	RDMA Write with Immediate   the same, and Imm; Solicited
//	RDMA Read                   exactly one Local with LocalWrite (none if Remote.Len is 0), and Remote
//	  with local Invalidate     the same, but not of length 0
//	  both of them              Class, on a QP with a Solicitor
//	Immediate                   Imm; Solicited
//	Fetch and Add               Remote, Add and AddMask
//	Compare and Swap            Remote, Compare, CompareMask, Swap and SwapMask
//	Swap                        Remote, Swap and SwapMask
//	Commit                      Regions and FollowOn; see [QP.Commit]
//	Local Invalidate            Invalidate: an STag of this side; or MR or MW, as of the requests posted before
//	Register                    MR of AllocMR; Memory or Buffer; Access; Remote.TO: the TO of its first octet
//	Bind                        MW; exactly one Local: the octets to cover; Access; Remote.TO likewise
//	  both of them              Key, which is optional
//
// A Write or Read moves the octets of Local; Remote must be at least as long. Memory named by
// Local belongs to the QP until the completion. Inline is copied when it is posted, so its
// buffer may be reused at once.
//
// Immediate Data is eight octets that consume one of the peer's receives and appear in its
// [WC], not in its memory (RFC 7306 section 6). The application defines their meaning; an
// iWARP card with 32 bits of Immediate Data puts them in the first four octets, big endian, and
// zero in the others. After an RDMA Write they tell the peer that the Write has been placed.
//
// An atomic operation changes the 64-bit integer at the beginning of Remote, and the WC
// returns its previous value (RFC 7306 section 5). The integer is in the byte order of the
// peer's host, at an address that is a multiple of eight, in a region with RemoteAtomic;
// Remote.Len is at least eight. Each bit that is set in AddMask is the most significant bit of
// a field that is added separately: 0 means one field of 64 bits, 1<<63|1<<31 two of 32 bits.
// Only the bits in CompareMask are compared, and only those in SwapMask are replaced; 0 means
// all of them. A Swap compares nothing.
//
// Local Invalidate, Register and Bind send nothing. Each takes effect before any later work
// request of the QP starts, so that a Send posted after a Bind may carry the new STag. Without
// a fence they do not wait for earlier work requests: set LocalFence on a Local Invalidate
// that follows work that still uses the STag. They fail, with StatusBind, if an STag is in the
// wrong state, if the QP may not use it, or if they ask for more than can be granted; like
// every failure this ends the QP. Register does not copy: Memory or Buffer is registered, as
// by [PD.RegisterMR], until it is invalidated. Key is the low octet of the new STag, whose
// other bits do not change (draft-hilland-rddp-verbs section 7.2). If it is nil, the library
// chooses a key that a peer can hardly predict, and that has not been used recently (RFC 5040
// section 8.1.1). A program that chooses keys must make sure that a peer cannot derive a new
// STag from an old one.
type SendWR struct {
	ID         uint64 // chosen by the caller, returned in the WC
	Op         Op
	Flags      Flags
	Local      []SGE
	Inline     []byte
	Remote     RemoteBuffer
	Invalidate stag.STag
	Imm        [8]byte
	MR         *MR
	MW         *MW
	Access     stag.Access
	Key        *uint8
	Memory     []byte
	Buffer     Buffer
	Regions    []RemoteBuffer
	FollowOn   *FollowOn
	Class      solicit.Class

	Add, Compare, Swap             uint64
	AddMask, CompareMask, SwapMask uint64
}

// A RecvWR is a receive: a buffer for one message of the peer. Its memory belongs to the QP
// until the completion. Without an SGE it accepts an empty message, or Immediate Data.
type RecvWR struct {
	ID    uint64
	Local []SGE
}
