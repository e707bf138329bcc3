package iwarp

import (
	"fmt"

	"github.com/goiwarp/iwarp/stag"
)

// An Op says what a work request asks for, or what a completion is about.
type Op uint8

// The operations. The numbers of those that are not listed are kept for later.
const (
	OpSend               Op = 1
	OpSendInvalidate     Op = 2
	OpRDMAWrite          Op = 3
	OpRDMAWriteImm       Op = 4 // an RDMA Write, and Immediate Data right behind it
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

func (o Op) String() string { return named("Op", opNames[:], uint8(o)) }

// takesReceive reports whether o is a message that takes a receive of the peer.
func (o Op) takesReceive() bool {
	switch o {
	case OpSend, OpSendInvalidate, OpRDMAWriteImm, OpImmediate:
		return true
	default:
		return false
	}
}

// received reports whether o is what the completion of a receive has.
func (o Op) received() bool { return o == OpRecv || o == OpRecvImm }

// Flags change how a work request is done, or tell more of a completion.
type Flags uint8

const (
	Unsignaled Flags = 1 << iota // no completion unless it fails
	Solicited                    // Send, Immediate: the peer's solicited event; in a WC: the message asked for one
	ReadFence                    // starts only when all earlier RDMA Reads and atomic operations have got their answer
	LocalFence                   // starts only when all earlier work requests have completed
)

const allFlags = Unsignaled | Solicited | ReadFence | LocalFence

// An SGE is one run of octets in a region: [Off, Off+Len) counted from the
// region's first octet. It is checked when it is posted. See [MR.Slice].
type SGE struct {
	MR       *MR
	Off, Len int
}

// A SendWR is a work request for the send queue. Which fields count depends on Op:
//
//	Send                        Local or Inline; Solicited
//	Send with Invalidate        the same, and Invalidate: the peer's STag
//	RDMA Write                  Local or Inline, and Remote
//	RDMA Write with Immediate   the same, and Imm; Solicited
//	RDMA Read                   exactly one Local with LocalWrite (none if Remote.Len is 0), and Remote
//	  with local Invalidate     the same, but not of length 0
//	Immediate                   Imm; Solicited
//	Fetch and Add               Remote, Add and AddMask
//	Compare and Swap            Remote, Compare, CompareMask, Swap and SwapMask
//	Swap                        Remote, Swap and SwapMask
//	Commit                      Regions and FollowOn; see [QP.Commit]
//	Local Invalidate            Invalidate: an STag of this side; or MR or MW, by what was posted before
//	Register                    MR of AllocMR; Memory or Buffer; Access; Remote.TO: the TO of its first octet
//	Bind                        MW; exactly one Local, what it is to cover; Access; Remote.TO likewise
//	  both of them              Key, if it is chosen
//
// A Write or Read moves the octets of Local; Remote must be at least as long.
// Memory named by Local is the QP's until the completion; Inline is copied when
// posted and its buffer free at once.
//
// Immediate Data is eight octets that take one of the peer's receives and come out in
// its [WC], not in its memory (RFC 7306 section 6). The application gives them their
// meaning; an iWARP card with 32 bits of Immediate Data has them in the first four
// octets, big endian, and zero in the others. Behind an RDMA Write they tell the peer
// that the Write has been placed.
//
// An atomic operation changes the 64-bit integer at the beginning of Remote, and the
// WC tells what it was before (RFC 7306 section 5). It is in the byte order of the
// peer's host, at an address that is a multiple of eight, in a region with
// RemoteAtomic; Remote.Len is at least eight. A set bit in AddMask is the top bit of a
// field that is added to by itself: 0 means one field of 64 bits, 1<<63|1<<31 two of
// 32. Only the bits in CompareMask are compared and only those in SwapMask are
// replaced; 0 means all of them. A Swap compares nothing.
//
// The last three send nothing. Each is in force before any later work request of the
// QP starts, so that a Send posted behind a Bind may carry the new STag, and waits for
// no earlier one without a fence: put LocalFence on a Local Invalidate behind work that
// still uses the STag. They fail, with StatusBind, where an STag is not in the right
// state or not the QP's to use, and where they ask for more than there is to grant;
// like every failure that ends the QP. What Register names is registered as by
// [PD.RegisterMR], not copied, until it is invalidated. Key is the low octet of the new
// STag, whose other bits stay (draft-hilland-rddp-verbs section 7.2). nil, the default: one
// that a peer can hardly predict, and that was not in use for long (RFC 5040 section 8.1.1).
// Who chooses keys takes care that a peer that knows an old STag does not know the new one
// by it.
type SendWR struct {
	ID         uint64 // the caller's, returned in the WC
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

	Add, Compare, Swap             uint64
	AddMask, CompareMask, SwapMask uint64
}

// A RecvWR is a buffer for one message of the peer. Its memory is the QP's until
// the completion. No SGE at all takes an empty message, or Immediate Data.
type RecvWR struct {
	ID    uint64
	Local []SGE
}

// named is the i-th name of a type.
func named(of string, names []string, i uint8) string {
	if int(i) < len(names) && names[i] != "" {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", of, i)
}
