// Package matrix contains the cases of the interop lab, and the guest's side of
// running them. Our side of a case runs in the program itself or as a child process;
// siw's side is a child process in the network namespace "peer".
package matrix

import (
	"slices"
	"time"

	"github.com/goiwarp/iwarp/interop/wire"
)

// A Role says which end of the connection is ours.
type Role string

// The roles.
const (
	Initiator Role = "initiator"
	Responder Role = "responder"
)

// A Case is one row of the matrix.
type Case struct {
	Name string
	Role Role
	Core bool // part of every CI run
	// Figures: the case measures and judges nothing. It takes long, and runs only with -figures.
	Figures bool
	// Knobs are parameters of the modified siw, as name=value; nil: the unchanged siw of
	// Debian's source.
	Knobs []string
	// SCTP: the capture must show DDP over SCTP, and nothing else over SCTP.
	SCTP bool
	// Tests are packages whose tests the case runs. They are in the shared folder,
	// compiled, by the last name of their paths: "iwarp.test".
	Tests []string
	// Limit is how long the case may take on an idle machine; 60 s if zero. See package pace.
	Limit time.Duration
	// Wire is what the capture must show of our end; Expected completes it.
	Wire wire.Expect
	// NoRTR: no connection that we begin reaches a ready-to-receive message, or none has
	// revision 2.
	NoRTR bool
	// NoCapture: the traffic is not captured, because there is too much of it.
	NoCapture bool
	// Kernel lists regular expressions for warnings and errors that the kernel may log in an NVMe case.
	Kernel []string
	Run    func(t *T)
}

// Expected returns what the capture must show of our end. Unless the case says otherwise, the
// initiator sends a ready-to-receive message: a Write, which it offers and siw prefers.
func (c *Case) Expected() wire.Expect {
	e := c.Wire
	if c.Role == Initiator && !c.NoRTR && e.RTR == nil {
		e.RTR = new(wire.Write)
	}
	return e
}

// terminates expects one Terminate from us.
func terminates(layer, etype, code uint8) wire.Expect {
	return wire.Expect{Terminate: &wire.Terminate{Layer: layer, Type: etype, Code: code}}
}

// Variant returns the build of siw that the case needs: stock or knobs.
func (c *Case) Variant() string {
	if c.Knobs != nil {
		return "knobs"
	}
	return "stock"
}

// Cases is the whole matrix.
var Cases = slices.Concat(rpingCases(), messageCases(), taggedCases(), setupCases(), knobCases(), errorCases(), unknownCases(), closeCases(), killCases(), soakCases(), cmCases(), sctpCases())

// A Table is a set of cases that run in a guest of the same kind.
type Table struct {
	Cases []Case
	SetUp func() error // makes the wire between the two ends, when siw is loaded
}

// The names of the tables. The flags of the lab have the same names, except for the matrix, which has none.
const (
	Matrix  = ""
	NVMe    = "nvme"
	Streams = "streams"
	Mounts  = "mounts"
)

var tables = map[string]*Table{
	Matrix:  {Cases, setUp},
	NVMe:    {nvmeCases, setUpNVMe},
	Streams: {streamCases, setUp},
	Mounts:  {mountCases, setUpMounts},
}

// TableOf returns the table with a name, or nil.
func TableOf(name string) *Table { return tables[name] }

// A Job is what the host tells the guest to do.
type Job struct {
	Variant string
	Table   string
	Cases   []string
}

// A Result is what the guest reports about a case. Without Done the case has only begun.
type Result struct {
	Name   string
	Done   bool
	Passed bool
	Why    string
	Notes  []string // figures, for the reader
	Took   time.Duration
	Scale  float64 // by which limits were extended when the case began
}
