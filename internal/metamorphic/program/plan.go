package program

import "github.com/goiwarp/iwarp"

// A Plan is what a program does, step by step, with everything that can be known before it runs.
type Plan struct {
	Program Program
	Conns   []*ConnPlan
	Steps   []Step
}

// A ConnPlan is what is known of one connection.
type ConnPlan struct {
	Fault   *Op             // the operation that ends it, unless Close
	Mems    []*Mem          // all memory of its two ends
	Short   [2]bool         // a message of the peer waits only briefly for a receive
	InDoubt []*Work         // posted since the last comparison
	Base    map[*Mem][]byte // all octets at that time
	Own     [2]*Mem
}

// A Work is one work request, and its expected results.
type Work struct {
	ID    uint64
	End   End
	Op    iwarp.Op
	Flags iwarp.Flags

	Local  span // of the end's own memory, or the sink of a Read with Invalidate
	SGEs   int
	Inline []byte  // not nil: used instead of Local
	Region *Region // of the peer
	To     int
	Params Op     // of atomic operations and Immediate Data
	Bad    string // what is wrong with the access
	Inval  *Region

	Old     uint64   // the value that an atomic operation returns
	Effects []Effect // in any memory
	Message *Message // that the peer receives
}

// confirms reports whether the success of w means that all earlier work of its end was placed.
func (w *Work) confirms() bool {
	switch w.Op {
	case iwarp.OpRDMARead, iwarp.OpRDMAReadInvalidate, iwarp.OpFetchAdd, iwarp.OpCompareSwap, iwarp.OpSwap, iwarp.OpCommit:
		return true
	default:
		return false
	}
}

// A Message is what the completion of a receive reports.
type Message struct {
	Op    iwarp.Op
	Data  []byte
	Imm   [8]byte
	Sol   bool
	Inval *Region // that it has invalidated
	Work  *Work
	Never bool // it must not be received
}

// A Receive is a posted receive.
type Receive struct {
	ID   uint64
	End  End // of an SRQ: the end of connection 0
	Len  int
	SGEs int
}

// A Region is memory that an end lends to its peer, from one registration to the next.
type Region struct {
	Mem     *Mem
	Kind    string
	Durable *Mem // what a Commit has made durable; nil: it has no backing
	Alive   bool
	Private bool    // made after the fault of the connection: the peer does not know it
	Before  *Region // whose MR or MW is registered again

	number int // r=
}

// A StepKind says what the executor does in a step.
type StepKind int

// The kinds of steps.
const (
	DoPost    StepKind = iota // Work
	DoRecv                    // Receive
	DoRegist                  // Region, with Work for fast registration and Bind
	DoRevoke                  // Region: How is verb or close
	DoDrain                   // the send queue of End
	DoCompare                 // the connection of End: everything is as in Want
	DoFault                   // How: close, abort, terminate or cut
	DoFinish                  // the connection of End has ended, or is ended
)

// A Step is one step of a plan.
type Step struct {
	Line    int // the operation that it is of
	Kind    StepKind
	End     End
	How     string
	N       int
	Work    *Work
	Receive *Receive
	Region  *Region
	Want    map[*Mem][]byte
}
