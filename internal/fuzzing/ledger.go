package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A row holds the totals of a target.
type row struct {
	execs    int64
	cpu      time.Duration
	inputs   int64
	findings int64
}

func (r *row) add(s result) {
	r.execs += s.execs
	r.cpu += s.cpu
	r.inputs += s.inputs
	if s.finding != "" {
		r.findings++
	}
}

// plus returns the sum of two rows.
func (r row) plus(s row) row {
	return row{r.execs + s.execs, r.cpu + s.cpu, r.inputs + s.inputs, r.findings + s.findings}
}

// A ledger holds the rows of targets by name.
type ledger map[string]row

const ledgerHead = `# What fuzzing has done so far, see docs/fuzzing.md. Written by go run ./internal/fuzzing.
# target, executions, seconds of processor time, new inputs, findings
`

// readLedger reads a file. If the file does not exist, the ledger is empty.
func readLedger(file string) (ledger, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return make(ledger), nil
	}
	if err != nil {
		return nil, err
	}
	return parseLedger(bytes.NewReader(b))
}

func parseLedger(r io.Reader) (ledger, error) {
	l := make(ledger)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var name string
		var s float64
		var w row
		if _, err := fmt.Sscan(line, &name, &w.execs, &s, &w.inputs, &w.findings); err != nil {
			return nil, fmt.Errorf("ledger: %q: %w", line, err)
		}
		w.cpu = time.Duration(s * float64(time.Second))
		l[name] = w
	}
	return l, lines.Err()
}

// text returns the contents of the ledger's file.
func (l ledger) text() []byte {
	var b bytes.Buffer
	b.WriteString(ledgerHead)
	for _, name := range slices.Sorted(maps.Keys(l)) {
		r := l[name]
		fmt.Fprintf(&b, "%s %d %.1f %d %d\n", name, r.execs, r.cpu.Seconds(), r.inputs, r.findings)
	}
	return b.Bytes()
}

// write replaces the file atomically, so that an interruption loses nothing.
func (l ledger) write(file string) error {
	if err := os.WriteFile(file+".new", l.text(), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// print prints the rows of targets, and their sum.
func (l ledger) print(w io.Writer, targets []target) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "executions\tCPU s\tnew inputs\tfindings\t  target\n")
	one := func(name string, r row) {
		fmt.Fprintf(tw, "%d\t%.1f\t%d\t%d\t  %s\n", r.execs, r.cpu.Seconds(), r.inputs, r.findings, name)
	}
	targets = slices.Clone(targets)
	slices.SortStableFunc(targets, func(a, b target) int { return cmp.Compare(l[a.name].cpu, l[b.name].cpu) })
	var sum row
	for _, t := range targets {
		one(t.name, l[t.name])
		sum = sum.plus(l[t.name])
	}
	one(fmt.Sprintf("%d targets", len(targets)), sum)
	return tw.Flush()
}
