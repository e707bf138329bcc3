package main

import "github.com/goiwarp/iwarp"

// An end is one side of a stream, that is, a QP. The near host has one end of both streams,
// and the far host the other.
type end uint8

const (
	nearA end = iota
	nearB
	farA
	farB
	ends
)

const (
	near = iota // the host of nearA and nearB
	far
	hosts
)

func (e end) peer() end { return e ^ 2 }
func (e end) host() int { return int(e >> 1) }

func (e end) String() string { return [...]string{"A", "B", "A (far end)", "B (far end)"}[e] }

// A variable is memory of a host. Every run of a program has its own, in a slot.
type variable uint8

const (
	nothing variable = iota
	x                // blocks of one or more segments
	y
	z
	c // integers for atomic operations
	d
	p // a block of a Buffer that a Commit makes durable
	e // an integer there
	w // a block with an STag of its own, which the peer may invalidate
	s // the sink of a Read, of the host that posts it, with an STag of its own
	variables
)

func (v variable) String() string { return " xyzcdpews"[v : v+1] }

// integer reports whether v is a single integer.
func (v variable) integer() bool { return v == c || v == d || v == e }

// A sight is what a host finds in a variable.
type sight struct {
	as  string // its name in the outcome
	of  variable
	how aspect
}

type aspect uint8

const (
	contents aspect = iota
	durable         // contents after a power failure: 1 if the value of this run is durable
	valid           // 1: the STag is valid
)

func sees(as string, of variable) sight      { return sight{as, of, contents} }
func isDurable(as string, of variable) sight { return sight{as, of, durable} }
func isValid(as string, of variable) sight   { return sight{as, of, valid} }

// An op is an operation that a thread posts at an end. A value is 0 before the run, and the
// operations of a program write 1 and 2.
type op struct {
	at    end
	verb  iwarp.Op // 0: wait for the completion of all that the thread has posted
	on    variable // of the peer
	value uint64   // that is written, sent, added or stored
	flags iwarp.Flags
	as    string   // name of the value that a Read or an atomic operation returns, or that a message has
	into  variable // a Read: its sink, a Send: its receive; nothing: private memory
	last  bool     // a Commit: store value in the variable c afterwards
	sees  []sight  // a message: by the receiver, when it completes; else by the thread, at the completion
}

func (o op) named(as string) op       { o.as = as; return o }
func (o op) fenced() op               { o.flags |= iwarp.ReadFence; return o }
func (o op) solicited() op            { o.flags |= iwarp.Solicited; return o }
func (o op) to(v variable) op         { o.into = v; return o }
func (o op) finds(sights ...sight) op { o.sees = sights; return o }
func (o op) isMessage() bool {
	return o.sends() || o.verb == iwarp.OpRDMAWriteImm || o.verb == iwarp.OpImmediate
}
func (o op) sends() bool    { return o.verb == iwarp.OpSend || o.verb == iwarp.OpSendInvalidate }
func (o op) isAtomic() bool { return o.verb == iwarp.OpFetchAdd || o.verb == iwarp.OpCompareSwap }
func (o op) reads() bool    { return o.verb == iwarp.OpRDMARead || o.verb == iwarp.OpRDMAReadInvalidate }
func (o op) writes() bool   { return o.verb == iwarp.OpRDMAWrite || o.verb == iwarp.OpRDMAWriteImm }
func write(at end, v variable, n uint64) op {
	return op{at: at, verb: iwarp.OpRDMAWrite, on: v, value: n}
}

func writeImmediate(at end, v variable, n uint64) op {
	return op{at: at, verb: iwarp.OpRDMAWriteImm, on: v, value: n}
}

func send(at end, n uint64) op      { return op{at: at, verb: iwarp.OpSend, value: n} }
func immediate(at end, n uint64) op { return op{at: at, verb: iwarp.OpImmediate, value: n} }

func sendInvalidate(at end, v variable) op {
	return op{at: at, verb: iwarp.OpSendInvalidate, on: v, value: 1}
}

func read(at end, v variable) op { return op{at: at, verb: iwarp.OpRDMARead, on: v} }

// readNothing is a Read of no octets, which shows that all before it was placed.
func readNothing(at end) op { return op{at: at, verb: iwarp.OpRDMARead} }

func readInvalidate(at end, v variable) op {
	return op{at: at, verb: iwarp.OpRDMAReadInvalidate, on: v, into: s}
}

func localInvalidate(at end) op {
	return op{at: at, verb: iwarp.OpLocalInvalidate, into: s, flags: iwarp.LocalFence}
}

func fetchAdd(at end, v variable, n uint64) op {
	return op{at: at, verb: iwarp.OpFetchAdd, on: v, value: n}
}

// compareSwap stores n if v has its first value.
func compareSwap(at end, v variable, n uint64) op {
	return op{at: at, verb: iwarp.OpCompareSwap, on: v, value: n}
}

func commitOf(at end, v variable) op { return op{at: at, verb: iwarp.OpCommit, on: v} }

// thenStores adds a follow-on to a Commit: n is stored in c.
func (o op) thenStores(n uint64) op { o.last, o.value = true, n; return o }

// wait waits until all that the thread has posted is complete.
var wait = op{}

// A program is one litmus test.
type program struct {
	name     string
	rule     string // sections of the RFCs
	says     string // to the user
	threads  [][]op // one or two; no two of them use the same end
	final    []sight
	outcomes []outcome // the first one that matches counts
}

// An outcome is a set of results of a run.
type outcome struct {
	when  string // "r=1 x=0"; names that it leaves out may have any value
	is    verdict
	seen  layers // the outcome must occur there, given enough runs
	never layers // the outcome does not occur there, for the reason in why
	why   string
}

type verdict uint8

const (
	forbidden verdict = iota
	required          // must be possible: it occurs over every layer
	allowed           // a program must expect it
)

func (v verdict) String() string { return [...]string{"forbidden", "required", "allowed"}[v] }

// layers is a set of kinds of lower layer.
type layers uint8

const (
	inOrder    layers = 1 << iota // TCP, and what behaves as TCP does
	reordering                    // segments overtake one another, as messages of SCTP do
	everywhere = inOrder | reordering
)
