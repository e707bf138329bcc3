package model

import (
	"fmt"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// Do is the kind of an action that the engine has to perform.
type Do uint8

// The kinds of actions. Begin, Fetched, Fill and Finish are methods of the queue, which take Action.Ref.
const (
	// DoRespond posts Response on Queue. If Data is keyed, the octets of the command are first sent there with an
	// RDMA Write, posted together with the response: what Fill filled in, or what the back end read. The receive
	// buffer of the command is posted again just before. With Last, Queue is closed when that was sent. If the call was
	// for another queue, Renew comes first.
	DoRespond Do = 1 + iota
	// DoFetch reads Data of the host: Begin before the RDMA Read is posted, and Fetched with its octets. A Read
	// that fails needs no call but Target.Lost.
	DoFetch
	// DoFill fills a buffer of Data.Length octets with the data that the host requested: Fill.
	DoFill
	// DoExecute executes Op: Begin just before, and Finish with its status.
	DoExecute
	// DoFlush flushes a subsystem, since controllers of it shut down: what Target.Flush names, with Controller, and then
	// Target.Flushed, again and again until Flush says that this is all. There is one DoFlush of a subsystem at a time.
	DoFlush
	// DoClose closes the connection of Queue. Nothing is sent on it any more. Target.Lost follows.
	DoClose
)

var doNames = [...]string{"", "respond", "fetch", "fill", "execute", "flush", "close"}

func (d Do) String() string {
	if int(d) < len(doNames) && d != 0 {
		return doNames[d]
	}
	return fmt.Sprintf("Do(%d)", uint8(d))
}

// A Ref names a command of a queue, until it has been answered. The zero Ref names none.
type Ref struct {
	Slot uint16 // below Queue.Depth; two commands outstanding at a time have different ones
	gen  uint32 // a slot is used again
}

// An Action is what the engine must do next. Do determines which fields are used.
type Action struct {
	Do         Do
	Queue      *Queue
	Ref        Ref
	Data       capsule.Data // where the data is, or goes to, at the host
	Op         Op
	Response   Response
	Last       bool        // DoRespond: close Queue after it
	Controller *Controller // DoFlush
	Refusal    *Refusal    // DoRespond: a Connect was refused, for a log; else nil
}

// A Response is the response capsule of a command.
type Response struct {
	Octets     [capsule.CQESize]byte // what to send
	Invalidate bool                  // with Send with Invalidate of STag
	STag       uint32
}

// A Refusal says why a Connect was refused. The names come from the host, and can be anything: String quotes them.
type Refusal struct {
	HostNQN, SubNQN string
	Err             capsule.ConnectError
}

func (r *Refusal) String() string {
	return fmt.Sprintf("host %.256q, subsystem %.256q: %v", r.HostNQN, r.SubNQN, &r.Err)
}

// OpKind is the kind of an operation of a back end.
type OpKind uint8

// The operations of a back end.
const (
	OpRead OpKind = 1 + iota
	OpWrite
	OpCompare // StatusCompareFailure if the octets differ
	OpWriteZeroes
	OpTrim
	OpFlush
)

var opNames = [...]string{"", "read", "write", "compare", "write zeroes", "trim", "flush"}

func (k OpKind) String() string {
	if int(k) < len(opNames) && k != 0 {
		return opNames[k]
	}
	return fmt.Sprintf("OpKind(%d)", uint8(k))
}

// An Op is work for a back end. Its ranges are within the namespace.
type Op struct {
	Kind      OpKind
	Namespace *Namespace // nil for OpFlush
	Offset    uint64     // octets, a multiple of the LBA
	Length    uint64     // octets, likewise; not of OpTrim and OpFlush
	// FUA requires that a write, or a trim, is durable before Finish, and that a flush precedes a Read.
	FUA bool
	// Unmap allows Write Zeroes to free the space.
	Unmap bool
	// Octets is the data of OpWrite and OpCompare, or the ranges of OpTrim: part of the message, or what was passed
	// to Fetched.
	Octets []byte
	// Ranges is the number of ranges of OpTrim.
	Ranges int
	// Namespaces are the namespaces of OpFlush. The slice is read-only.
	Namespaces []*Namespace
}

// Range returns range i of OpTrim, in octets. n may be 0.
func (o *Op) Range(i int) (off, n uint64) {
	r := capsule.ParseDSMRange(o.Octets, i)
	return r.SLBA << o.Namespace.lbads, uint64(r.NLB) << o.Namespace.lbads
}
