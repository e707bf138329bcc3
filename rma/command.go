package rma

import (
	"time"

	"github.com/goiwarp/iwarp/internal/names"
	"github.com/goiwarp/iwarp/rma/internal/wire"
	"github.com/goiwarp/iwarp/solicit"
)

// An Op is what an operation does.
type Op uint8

// The operations. A Portal accepts Read and Write.
const (
	Read  Op = 1 + iota // octets of the region to Command.Buf
	Write               // octets of Command.Buf to the region
	Open                // Client.Open
	Rekey               // Handle.Rekey
)

var opNames = [...]string{Read: "read", Write: "write", Open: "open", Rekey: "rekey"}

func (o Op) String() string { return names.Of(o, opNames[:], "operation %d") }

// Ops are the rights that a client has on a region.
type Ops uint8

// The rights.
const (
	MayRead   = Ops(wire.OpRead)
	MayWrite  = Ops(wire.OpWrite)
	MayManage = Ops(wire.OpManage) // to Rekey

	allOps = MayRead | MayWrite | MayManage
)

// Has reports whether o includes all of these rights.
func (o Ops) Has(these Ops) bool { return o&these == these }

// A Slot is a place of a Portal for one operation.
type Slot uint16

// A Command is an operation for a Portal.
type Command struct {
	Op     Op
	Handle *Handle
	Off    uint64 // in the region
	// Buf belongs to the Portal until the completion. It holds at most Client.MaxOp octets.
	Buf     []byte
	Class   solicit.Class
	Timeout time.Duration // from the request to the answer; 0: ClientConfig.OpTimeout
	Tag     uint64        // the caller's
	// Direct saves a copy in a Read, whose Buf may then have any content after a failure.
	Direct bool
}

// A Completion reports how an operation has ended.
type Completion struct {
	Slot Slot
	Tag  uint64
	N    int   // octets: all or none
	Err  error // nil, or an *OpError
	// Issue is the time until the request was sent, Total the time until the end.
	Issue, Total time.Duration
}
