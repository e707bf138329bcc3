package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// docsFile is the page with the totals, between two marks.
const docsFile = "docs/fuzzing.md"

const (
	docsBegin = "<!-- go run ./internal/fuzzing -docs: begin -->\n"
	docsEnd   = "<!-- end -->\n"
)

// properties says what the targets of each package check: a package, and a text, on each line.
//
//go:embed properties.txt
var properties string

// A property is what the targets of a package check.
type property struct{ pkg, text string }

func parseProperties() (list []property) {
	for line := range strings.Lines(properties) {
		if pkg, text, ok := strings.Cut(strings.TrimSpace(line), " "); ok && pkg != "#" {
			list = append(list, property{pkg, text})
		}
	}
	return list
}

// table returns the text between the marks.
func table(targets []target, l ledger) []byte {
	var b bytes.Buffer
	b.WriteString("| package | targets | property | executions | CPU | findings |\n|---|---|---|---|---|---|\n")
	var sum row
	for _, p := range parseProperties() {
		var names []string
		var r row
		for _, t := range targets {
			if t.name == p.pkg+"."+t.fn {
				names = append(names, strings.TrimPrefix(t.fn, "Fuzz"))
				r = r.plus(l[t.name])
			}
		}
		sum = sum.plus(r)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", p.pkg, strings.Join(names, ", "), p.text, numbers(r))
	}
	fmt.Fprintf(&b, "| all | %d | | %s |\n", len(targets), numbers(sum))
	return b.Bytes()
}

func numbers(r row) string {
	return fmt.Sprintf("%s | %s | %d", thousands(r.execs), r.cpu.Round(time.Minute/10), r.findings)
}

// thousands formats a number in a readable form.
func thousands(n int64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%d M", n/1_000_000)
	case n >= 10_000:
		return fmt.Sprintf("%d k", n/1000)
	}
	return fmt.Sprint(n)
}

// writeDocs puts the table into the page.
func writeDocs(root string, l ledger) error {
	old, renewed, err := docs(root, l)
	if err != nil || bytes.Equal(old, renewed) {
		return err
	}
	return os.WriteFile(filepath.Join(root, docsFile), renewed, 0o644)
}

// docs returns the page as it is, and the page with the table of a ledger.
func docs(root string, l ledger) (old, renewed []byte, err error) {
	targets, err := find(root, regexp.MustCompile(""))
	if err != nil {
		return nil, nil, err
	}
	old, err = os.ReadFile(filepath.Join(root, docsFile))
	if err != nil {
		return nil, nil, err
	}
	head, rest, ok := bytes.Cut(old, []byte(docsBegin))
	_, tail, end := bytes.Cut(rest, []byte(docsEnd))
	if !ok || !end {
		return nil, nil, fmt.Errorf("%s: the marks are missing", docsFile)
	}
	return old, bytes.Join([][]byte{head, []byte(docsBegin), table(targets, l), []byte(docsEnd), tail}, nil), nil
}
