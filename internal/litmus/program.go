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
	c // integers for atomic operations
	d
	p // a block of a Buffer that a Commit makes durable
	e // an integer there
	w // a block with its own STag, which the peer may invalidate
	s // the sink of a Read, on the host that posts it, with its own STag
	variables
)

func (v variable) String() string { return " xycdpews"[v : v+1] }

// integer reports whether v is a single integer.
func (v variable) integer() bool { return v == c || v == d || v == e }

// A sight is an observation of a variable by a host.
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
	verb  iwarp.Op // 0: wait for the completion of all work that the thread has posted
	on    variable // of the peer
	value uint64   // to write, send, add or store
	flags iwarp.Flags
	as    string   // name of the value that a Read or an atomic operation returns, or that a message carries
	into  variable // a Read: its sink, a Send: its receive; nothing: private memory
	store bool     // a Commit: its follow-on stores value in c
	sees  []sight  // a message: by the receiver, when it completes; else by the thread, at the completion
}

// A program is one litmus test.
type program struct {
	name     string
	rule     string // sections of the RFCs
	says     string // to the user
	threads  [][]op // one or two; no two of them use the same end
	final    []sight
	outcomes []outcome // the first one that matches applies
}

// An outcome is a set of results of a run.
type outcome struct {
	when  string // "r=1 x=0"; names that it omits may have any value
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
	inOrder    layers = 1 << iota // TCP, and layers that behave like TCP
	reordering                    // segments overtake one another, as messages of SCTP do
	everywhere = inOrder | reordering
)
