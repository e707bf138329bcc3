package monitor

import (
	"time"

	"github.com/goiwarp/iwarp/counters"
)

// A State is what a program has counted up to a moment. Its names in JSON are stable: fields may be added, and readers ignore
// fields that they do not know. Durations are in nanoseconds, and counts are totals: [Compare] makes rates from two States of one
// process.
type State struct {
	Time    time.Time     `json:"time"`
	Uptime  time.Duration `json:"uptime_ns"` // of the process; it does not jump when the clock is set
	Process Process       `json:"process"`
	RNICs   []RNIC        `json:"rnics"`
}

// A Process identifies the process of a State. Two values are equal only if they are of the same process.
type Process struct {
	Program string    `json:"program"` // the name of its file
	Version string    `json:"version"` // of its main module, as Go has recorded it
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
}

// An RNIC is what one RNIC has counted, with its QPs that are established now.
type RNIC struct {
	ID            int  `json:"id"` // in the order in which RNICs were added to the Handler, from 0 on
	counters.RNIC      // its fields are at the level of id
	QPs           []QP `json:"qps"`
}

// A QP is one connection. Its texts contain only printable ASCII characters; others are escaped as in Go.
type QP struct {
	ID      uint64 `json:"id"` // unique for the lifetime of the Handler
	Network string `json:"network"`
	Local   string `json:"local"`
	Remote  string `json:"remote"`
	State   string `json:"state"` // the name of an iwarp.State

	Peer        *Peer `json:"peer,omitempty"` // nil: not authenticated
	counters.QP       // its fields are at the level of id

	TCP *counters.TCP `json:"tcp,omitempty"` // nil: the kernel does not report it
}

// A Peer identifies an authenticated peer, see iwarp.Peer.
type Peer struct {
	ID    string `json:"id"` // hexadecimal
	Kind  uint8  `json:"kind"`
	Group string `json:"group,omitempty"`
	Name  string `json:"name,omitempty"`
}
