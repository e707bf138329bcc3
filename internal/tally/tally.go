// Package tally adds up the counts of the QPs of an RNIC. Each QP counts for itself; its counts are added to the sums when it
// ends, and until then they are read each time.
package tally

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/transport"
)

// A Tally holds the sums of one RNIC. The lock of the RNIC's registry of QPs guards it, except atomic fields.
type Tally struct {
	// CQOverflows counts the times that a CQ began to lose completions.
	CQOverflows atomic.Uint64

	ops        *timed // nil: latencies are not measured
	paths      map[string]*path
	terminates map[terminate]uint64
}

// A path holds the sums of QPs with one Path.
type path struct {
	ended counters.Path // of QPs that have ended; Made counts all QPs
	lat   *Latencies    // nil: not measured
}

// A terminate is a code that an RFC defines, or 0 with known unset.
type terminate struct {
	code          transport.Code
	known, remote bool
}

// Init makes t ready. If latency is set, the latencies of the operations with these names, by number, are measured.
func (t *Tally) Init(latency bool, ops []string) {
	t.paths, t.terminates = make(map[string]*path), make(map[terminate]uint64)
	if latency {
		t.ops = &timed{names: ops, began: time.Now()}
	}
}

// Stamp stores the time in at, if latencies are measured.
func (t *Tally) Stamp(at *int64) {
	if t.ops != nil {
		*at = t.ops.now()
	}
}

// Made counts a QP that was established. It returns the Latencies of the QP, nil if they are not measured.
func (t *Tally) Made(name string) *Latencies {
	p := t.paths[name]
	if p == nil {
		p = &path{lat: t.ops.latencies()}
		p.ended.Path = name
		t.paths[name] = p
	}
	p.ended.Made++
	return p.lat
}

// An Ending holds the final counts of a QP that has ended.
type Ending struct {
	Counts      *counters.QP
	How         counters.End
	Retransmits uint64
}

// Ended adds the counts of a QP that has ended.
func (t *Tally) Ended(e Ending) {
	p := &t.paths[e.Counts.Path].ended
	p.Add(e.Counts)
	p.Ended[e.How]++
	p.TCP.Retransmits += e.Retransmits
}

// Terminated counts a QP that has ended by a Terminate.
func (t *Tally) Terminated(c transport.Code, remote bool) {
	key := terminate{remote: remote}
	if c.Assigned() {
		key.code, key.known = c, true
	}
	t.terminates[key]++
}

// A Live is a QP that may not have ended, as it is now.
type Live struct {
	Counts counters.QP
	TCP    counters.TCP
	HasTCP bool // false: TCP has only Retransmits
}

// Snapshot returns the sums over QPs that have ended.
func (t *Tally) Snapshot() *counters.RNIC {
	s := &counters.RNIC{CQOverflows: t.CQOverflows.Load()}
	for _, p := range t.paths {
		sum := p.ended
		sum.Latency = p.lat.read()
		s.Paths = append(s.Paths, sum)
	}
	slices.SortFunc(s.Paths, func(a, b counters.Path) int { return strings.Compare(a.Path, b.Path) })
	for k, n := range t.terminates {
		s.Terminates = append(s.Terminates, counters.Terminate{
			Layer: k.code.Layer(), Type: k.code.Type(), Code: k.code.Code(), Known: k.known, Remote: k.remote, Count: n,
		})
	}
	slices.SortFunc(s.Terminates, compare)
	return s
}

func compare(a, b counters.Terminate) int { return order(a) - order(b) }

func order(t counters.Terminate) int {
	n := int(transport.MakeCode(t.Layer, t.Type, t.Code)) << 2
	if t.Remote {
		n |= 1
	}
	if !t.Known {
		n |= 1 << 20
	}
	return n
}

// AddLive adds the n QPs that live fills in, one after the other, to the sums of a Snapshot that was taken when they had not ended.
func AddLive(s *counters.RNIC, n int, live func(i int, l *Live)) {
	for i := range n {
		var l Live
		live(i, &l)
		at, found := slices.BinarySearchFunc(s.Paths, l.Counts.Path, func(p counters.Path, name string) int { return strings.Compare(p.Path, name) })
		if !found {
			continue
		}
		p := &s.Paths[at]
		p.Live++
		p.Add(&l.Counts)
		p.AddNow(&l.Counts)
		p.TCP.Retransmits += l.TCP.Retransmits // even if the connection has ended and the QP has not
		if l.HasTCP {
			p.TCPs++
			addTCP(&p.TCP, &l.TCP)
		}
	}
	for i := range s.Paths {
		if p := &s.Paths[i]; p.TCPs > 0 {
			p.TCP.RTT /= time.Duration(p.TCPs)
			p.TCP.RTTVar /= time.Duration(p.TCPs)
		}
	}
}

// addTCP adds the current values of a connection.
func addTCP(sum, c *counters.TCP) {
	sum.RTT += c.RTT
	sum.RTTVar += c.RTTVar
	sum.Unacked += c.Unacked
	sum.Window += c.Window
}
