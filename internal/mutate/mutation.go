package main

import (
	_ "embed"
	"fmt"
	"path"
	"regexp"
	"strings"
)

//go:embed mutations.txt
var mutationList string

// A mutation replaces one piece of one line of the source.
type mutation struct {
	id   string // requirement and letter: "MPA-12a"
	file string // below the module, with slashes
	pkg  string // directory of the test
	test string
	at   string // text that occurs once in the file; old is the first after it; "": the whole file
	old  string
	new  string
}

// rootPackage is the name of the package at the root of the module.
const rootPackage = "iwarp"

var mutationID = regexp.MustCompile(`^[A-Z]+[0-9]?-[0-9]+[a-z]$`)

// requirement is the one whose test must notice.
func (m mutation) requirement() string { return m.id[:len(m.id)-1] }

// target names the test as the list does.
func (m mutation) target() string {
	if m.pkg == "." {
		return rootPackage + "." + m.test
	}
	return m.pkg + "." + m.test
}

// mutations reads the list.
func mutations() ([]mutation, error) { return parseMutations(mutationList) }

// parseMutations reads blocks of this form, with blank lines between them and
// comments after #:
//
//	MPA-12a mpa/marker.go TestMPA_12_ReservedIsZeroOnSend
//	@ func appendMarker
//	- old text
//	+ new text
//
// The line with @ may be left out if the old text occurs only once in the file. A
// test of another package is named with it: ddp.TestDDP_7_Name. An empty new
// text stands for deletion.
func parseMutations(text string) ([]mutation, error) {
	var ms []mutation
	seen := make(map[string]bool)
	for i, block := range blocks(text) {
		m, err := parseBlock(block)
		if err != nil {
			return nil, fmt.Errorf("mutation %d (%s): %w", i+1, block[0], err)
		}
		if seen[m.id] {
			return nil, fmt.Errorf("mutation %s is there twice", m.id)
		}
		seen[m.id] = true
		ms = append(ms, m)
	}
	return ms, nil
}

// blocks splits the list at blank lines and drops comments.
func blocks(text string) [][]string {
	var all [][]string
	var block []string
	for line := range strings.Lines(text + "\n\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#"):
		case line != "":
			block = append(block, line)
		case block != nil:
			all = append(all, block)
			block = nil
		}
	}
	return all
}

func parseBlock(block []string) (mutation, error) {
	head := strings.Fields(block[0])
	if len(head) != 3 || !mutationID.MatchString(head[0]) {
		return mutation{}, fmt.Errorf("want id, file and test")
	}
	m := mutation{id: head[0], file: head[1], pkg: path.Dir(head[1]), test: head[2]}
	if dot := strings.LastIndexByte(m.test, '.'); dot >= 0 {
		m.pkg, m.test = m.test[:dot], m.test[dot+1:]
	}
	if m.pkg == rootPackage {
		m.pkg = "."
	}
	lines := block[1:]
	if len(lines) == 3 && strings.HasPrefix(lines[0], "@ ") {
		m.at, lines = lines[0][2:], lines[1:]
	}
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "- ") || lines[1][0] != '+' {
		return mutation{}, fmt.Errorf("want an optional line with @, one with - and one with +")
	}
	m.old, m.new = lines[0][2:], strings.TrimSpace(lines[1][1:])
	return m, nil
}

// apply returns the changed source, or an error if the place is not there or not
// unique.
func (m mutation) apply(src string) (string, error) {
	start := 0
	if m.at != "" {
		if n := strings.Count(src, m.at); n != 1 {
			return "", fmt.Errorf("%s: %q occurs %d times in %s, want 1", m.id, m.at, n, m.file)
		}
		start = strings.Index(src, m.at)
	} else if n := strings.Count(src, m.old); n > 1 {
		return "", fmt.Errorf("%s: %q occurs %d times in %s, want 1", m.id, m.old, n, m.file)
	}
	i := strings.Index(src[start:], m.old)
	if i < 0 {
		return "", fmt.Errorf("%s: %q does not occur in %s", m.id, m.old, m.file)
	}
	i += start
	return src[:i] + m.new + src[i+len(m.old):], nil
}
