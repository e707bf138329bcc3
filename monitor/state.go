package monitor

import (
	"time"

	"github.com/goiwarp/iwarp/counters"
)

// A State is what a program has counted until a moment. As JSON its names are stable: fields may be added, and readers leave out
// those that they do not know. Durations are in nanoseconds, and counts are totals: two States of one process make rates, by
// [Compare].
type State struct {
	Time    time.Time     `json:"time"`
	Uptime  time.Duration `json:"uptime_ns"` // of the process; it does not jump when the clock is set
	Process Process       `json:"process"`
	RNICs   []RNIC        `json:"rnics"`
}

// A Process is what a State is of. Two are equal only if they are the same process.
type Process struct {
	Program string    `json:"program"` // the name of its file
	Version string    `json:"version"` // of its main module, as Go has recorded it
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
}

// An RNIC is what one of them has counted, with its QPs that are established now.
type RNIC struct {
	ID            int  `json:"id"` // in the order in which the Handler was given them, from 0 on
	counters.RNIC      // its fields are at the level of id
	QPs           []QP `json:"qps"`
}

// A QP is one connection. Its texts have printable characters of ASCII only; others are escaped as Go does.
type QP struct {
	ID      uint64 `json:"id"` // of this connection alone, for as long as the Handler lives
	Network string `json:"network"`
	Local   string `json:"local"`
	Remote  string `json:"remote"`
	State   string `json:"state"` // the name of an iwarp.State

	Peer        *Peer `json:"peer,omitempty"` // nil: not authenticated
	counters.QP       // its fields are at the level of id

	TCP *counters.TCP `json:"tcp,omitempty"` // nil: the kernel does not tell it
}

// A Peer is which peer the authentication has found, see iwarp.Peer.
type Peer struct {
	ID    string `json:"id"` // hexadecimal
	Kind  uint8  `json:"kind"`
	Group string `json:"group,omitempty"`
	Name  string `json:"name,omitempty"`
}
