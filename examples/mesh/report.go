package main

import (
	"fmt"
	"text/tabwriter"
)

// A row is the result of one phase.
type row struct {
	phase            string
	processes        int
	setups, attempts int
	pairs            int // of processes whose data were verified
	writes           int // that were verified
	refused          int // set-ups that had to be refused
}

// sum adds up the connections that processes have set up.
func sum(replies []reply) (all reply) {
	for _, r := range replies {
		all.Setups += r.Setups
		all.Attempts += r.Attempts
	}
	return all
}

// pairs returns the number of ordered pairs of processes that are not away.
func (m *mesh) pairs() int {
	n := len(m.present())
	return n * (n - 1)
}

// write lets each process write to all others, and verifies all pairs.
func (m *mesh) write(phase string, round uint32, setups reply) error {
	_, err := m.each(m.present(), func(int) command { return command{Do: "write", Round: round} })
	if err != nil {
		return err
	}
	return m.verify(phase, round, setups, func(int) int { return 1 })
}

// verify asks each process which Writes it has verified in a round: as many of each other process
// as wanted says, and none of itself or of one that is away.
func (m *mesh) verify(phase string, round uint32, setups reply, wanted func(from int) int) error {
	replies, err := m.each(m.present(), func(int) command { return command{Do: "seen", Round: round} })
	if err != nil {
		return err
	}
	r := row{phase: phase, processes: len(m.present()), setups: setups.Setups, attempts: setups.Attempts}
	for _, to := range m.present() {
		for from, seen := range replies[to].Seen {
			want := 0
			if from != to && m.children[from] != nil {
				want = wanted(from)
			}
			if seen != want {
				return fmt.Errorf("%s: process %d has verified %d Writes of process %d, and should have verified %d", phase, to, seen, from, want)
			}
			if seen > 0 {
				r.pairs++
				r.writes += seen
			}
		}
	}
	if r.pairs != m.pairs() {
		return fmt.Errorf("%s: %d pairs of %d were verified", phase, r.pairs, m.pairs())
	}
	m.done = append(m.done, r)
	return nil
}

// refused records set-ups that have failed as they should.
func (m *mesh) refused(phase string, n int) {
	m.done = append(m.done, row{phase: phase, processes: len(m.present()), attempts: n, refused: n})
}

// print prints the results.
func (m *mesh) print() error {
	t := tabwriter.NewWriter(m.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "phase\tprocesses\tset-ups\tattempts\trefused\tWrites verified\tpairs verified\t")
	for _, r := range m.done {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", r.phase, r.processes, r.setups, r.attempts, r.refused, r.writes, r.pairs)
	}
	return t.Flush()
}
