// Package matrix is what the interop lab tries: the table of cases, and the guest's
// side of running them. Our side of a case runs in the program itself or as a child
// process; siw's side is a child process in the network namespace "peer".
package matrix

import (
	"slices"
	"time"
)

// A Role is which end of the connection is ours.
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
	Core bool // part of what every CI run does
	// Knobs are parameters of the modified siw, as name=value; nil: siw as Debian's
	// source has it.
	Knobs []string
	// SCTP: the capture must show DDP over SCTP, and nothing else over SCTP.
	SCTP bool
	// Tests are packages whose tests the case runs. They are in the shared folder,
	// compiled, by the last name of their paths: "iwarp.test".
	Tests []string
	Limit time.Duration // 60 s if zero
	Run   func(t *T)
}

// Variant is the build of siw that the case needs: stock or knobs.
func (c *Case) Variant() string {
	if c.Knobs != nil {
		return "knobs"
	}
	return "stock"
}

// Cases is the whole matrix.
var Cases = slices.Concat(rpingCases(), messageCases(), taggedCases(), setupCases(), knobCases(), errorCases(), unknownCases(), closeCases(), killCases(), sctpCases())

// A Job is what the host tells the guest to do.
type Job struct {
	Variant string
	Cases   []string
}

// A Result is what the guest says of a case. Without Done it has only begun.
type Result struct {
	Name   string
	Done   bool
	Passed bool
	Why    string
	Took   time.Duration
	Scale  float64 // by which limits were stretched when the case began
}
