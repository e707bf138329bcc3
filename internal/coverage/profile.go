package main

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A profile holds blocks of statements by position, such as example.com/a/b.go:10.2,12.5.
type profile map[string]block

type block struct {
	statements int
	executed   bool
}

// add parses and adds a profile that go test -coverprofile has written.
func (p profile) add(text string) error {
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if strings.HasPrefix(line, "mode:") {
			continue
		}
		f := strings.Fields(line)
		if len(f) != 3 {
			return fmt.Errorf("line %d: %q", i+1, line)
		}
		n, err := strconv.Atoi(f[1])
		if err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		p[f[0]] = block{n, p[f[0]].executed || f[2] != "0"}
	}
	return nil
}

// of returns the part of one package.
func (p profile) of(pkg string) profile {
	part := make(profile)
	for at, b := range p {
		file, _, _ := strings.Cut(at, ":")
		if path.Dir(file) == pkg {
			part[at] = b
		}
	}
	return part
}

// count counts all statements, and the executed ones.
func (p profile) count() (all, executed int) {
	for _, b := range p {
		all += b.statements
		if b.executed {
			executed += b.statements
		}
	}
	return all, executed
}

// missing returns the positions of the blocks that were not executed, in order.
func (p profile) missing() (where []string) {
	for at, b := range p {
		if !b.executed {
			where = append(where, at)
		}
	}
	slices.SortFunc(where, func(a, b string) int {
		fa, la, _ := strings.Cut(a, ":")
		fb, lb, _ := strings.Cut(b, ":")
		if fa != fb {
			return strings.Compare(fa, fb)
		}
		return first(la) - first(lb)
	})
	return where
}

// first returns the line at which a block begins.
func first(at string) int {
	line, _, _ := strings.Cut(at, ".")
	n, _ := strconv.Atoi(line)
	return n
}
