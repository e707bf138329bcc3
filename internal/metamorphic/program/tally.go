package program

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/goiwarp/iwarp"
)

// What is wrong with completions.
var (
	ErrLost   = errors.New("no completion of")
	ErrNotDue = errors.New("a completion that is not due")
	ErrTwice  = errors.New("the receive has completed twice")
)

// Counts are the numbers of one run, or of many.
type Counts struct {
	Posted    map[iwarp.Op]int // work requests that send queues have accepted
	Receives  int              // receives that receive queues have accepted
	Completed int              // completions of both kinds
	Octets    int              // octets that were compared with the model
	Due       int              // octets that had to be compared
}

// check checks that no octet was omitted.
func (c *Counts) check() error {
	if c.Octets != c.Due {
		return fmt.Errorf("%d octets were verified of %d", c.Octets, c.Due)
	}
	return nil
}

// A Tally sums up the Counts of many runs, which may be concurrent.
type Tally struct {
	mu     sync.Mutex
	sum    Counts
	faults map[string]int
	lost   int
	twice  int
}

// add adds one run.
func (t *Tally) add(c *Counts, p *Plan, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.faults == nil {
		t.faults, t.sum.Posted = make(map[string]int), make(map[iwarp.Op]int)
	}
	for op, n := range c.Posted {
		t.sum.Posted[op] += n
	}
	t.sum.Receives += c.Receives
	t.sum.Completed += c.Completed
	t.sum.Octets += c.Octets
	t.sum.Due += c.Due
	for _, conn := range p.Conns {
		if f := conn.Fault; f != nil {
			t.faults[faultName(f)]++
		}
	}
	if errors.Is(err, ErrLost) {
		t.lost++
	}
	if errors.Is(err, ErrNotDue) || errors.Is(err, ErrTwice) {
		t.twice++
	}
}

// faultName names what has ended a connection.
func faultName(f *Op) string {
	if how := f.how(); how != "" {
		return string(f.Verb) + " " + how
	}
	return string(f.Verb)
}

// Sum returns the sums, and how many runs had each kind of fault, or failed because a completion was missing, or arrived
// although it was not due. No run may be in progress.
func (t *Tally) Sum() (sum Counts, faults map[string]int, lost, doubled int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sum, t.faults, t.lost, t.twice
}

// equal compares octets with the model, and counts them.
func (x *run) equal(got, want []byte) bool {
	x.counts.Due += len(want)
	if x.blind != nil && len(got) == len(want) {
		got = x.blind(got)
		want = want[:len(got)]
	}
	x.counts.Octets += len(got)
	return bytes.Equal(got, want)
}

// takeSent takes a completion of a send queue.
func (x *run) takeSent(e *liveEnd, wc iwarp.WC) {
	if x.lose == nil || !x.lose(wc) {
		x.counts.Completed++
		e.done = append(e.done, wc)
	}
}

// takeReceived takes a completion of a receive queue.
func (x *run) takeReceived(e *liveEnd, wc iwarp.WC) {
	x.counts.Completed++
	e.got = append(e.got, wc)
}
