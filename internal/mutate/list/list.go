// Package list holds the planted defects of the project: one-line mistakes, each with the
// requirement test that must notice it, and the reasons why some requirements have none.
//
// The files in the mutations directory are named after the series of requirements: cm.txt,
// cm_seams.txt. They hold blocks with blank lines between them, and comments after #. A defect is
//
//	MPA-12a mpa/marker.go TestMPA_12_ReservedIsZeroOnSend
//	@ func appendMarker
//	- old text
//	+ new text
//
// The id is the requirement and a letter. The line with @ may be left out if the old text
// occurs only once in the file; otherwise the first occurrence after it is meant. A test of
// another package is named with it: ddp.TestDDP_7_Name. An empty new text deletes the old.
//
// The series ARB, CONN, LINK and LIT are about no requirement: their numbers are the functions of package
// qpconn, those of its arbiter and those of the rest, and of the connections of package rma, and the groups of
// programs of package litmus. The series META is about no requirement either: the random programs of
// internal/metamorphic must notice its defects. Those of the series FLT are noticed by tests of damaged connections, of
// misuse, and of system calls that fail; those of FUZZ by fuzz targets, from their seeds; those of SIW are of what is there because of Linux's siw alone.
// Those of the series MET are of what is counted, exported, traced and logged, and those of DMP of what iwarp dump decodes. The numbers of the series ATK are the rows of docs/attacks.md.
//
// A requirement that no one-line mistake can break has a block of one line instead:
//
//	MPA-2 none: reason
package list

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

//go:embed mutations/*.txt
var files embed.FS

// A Mutation replaces one piece of one line of the source.
type Mutation struct {
	ID   string // requirement and letter: "MPA-12a"
	File string // below the module, with slashes
	Pkg  string // directory of the test
	Test string
	At   string // text that occurs once in the file; Old is the first after it; "": the whole file
	Old  string
	New  string
}

// A List is everything that the files say.
type List struct {
	Mutations []Mutation
	None      map[string]string // by requirement: why no mutation can show it
}

// unrequired are the series that are about no requirement.
var unrequired = map[string]bool{
	"ARB": true, "ATK": true, "CONN": true, "DMP": true, "FLT": true, "FUZZ": true, "LINK": true, "LIT": true, "MET": true, "META": true, "SIW": true,
}

// rootPackage is the name of the package at the root of the module.
const rootPackage = "iwarp"

var (
	mutationID  = regexp.MustCompile(`^[A-Z]+[0-9]?[A-Z]*-[0-9]+[a-z]$`)
	noneLine    = regexp.MustCompile(`^([A-Z]+[0-9]?[A-Z]*-[0-9]+) none: (.+)$`)
	fileOfBlock = regexp.MustCompile(`^[A-Z]+[0-9]?[A-Z]*`)
)

// Requirement is the one whose test must notice the mutation.
func (m Mutation) Requirement() string { return m.ID[:len(m.ID)-1] }

// HasRequirement reports whether there is one, which the test cites.
func (m Mutation) HasRequirement() bool { return !unrequired[fileOfBlock.FindString(m.ID)] }

// Target names the test as the list does.
func (m Mutation) Target() string {
	if m.Pkg == "." {
		return rootPackage + "." + m.Test
	}
	return m.Pkg + "." + m.Test
}

// Load reads all files.
func Load() (*List, error) {
	l := &List{None: make(map[string]string)}
	seen := make(map[string]bool)
	names, err := fs.Glob(files, "mutations/*.txt")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		series, _, _ := strings.Cut(strings.ToUpper(strings.TrimSuffix(path.Base(name), ".txt")), "_")
		if err := l.parse(series, string(text), seen); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, m := range l.Mutations {
		if l.None[m.Requirement()] != "" {
			return nil, fmt.Errorf("%s has mutations, and a reason why there is none", m.Requirement())
		}
	}
	return l, nil
}

// parse reads the blocks of one series of requirements.
func (l *List) parse(series, text string, seen map[string]bool) error {
	for i, block := range blocks(text) {
		id, _, _ := strings.Cut(block[0], " ")
		if fileOfBlock.FindString(id) != series {
			return fmt.Errorf("block %d (%s) is not about a requirement of %s", i+1, block[0], series)
		}
		if seen[id] {
			return fmt.Errorf("%s is there twice", id)
		}
		seen[id] = true
		if none := noneLine.FindStringSubmatch(block[0]); none != nil && len(block) == 1 {
			l.None[none[1]] = none[2]
			continue
		}
		m, err := parseBlock(block)
		if err != nil {
			return fmt.Errorf("block %d (%s): %w", i+1, block[0], err)
		}
		l.Mutations = append(l.Mutations, m)
	}
	return nil
}

// blocks splits the text at blank lines and drops comments.
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

func parseBlock(block []string) (Mutation, error) {
	head := strings.Fields(block[0])
	if len(head) != 3 || !mutationID.MatchString(head[0]) {
		return Mutation{}, fmt.Errorf("want id, file and test")
	}
	m := Mutation{ID: head[0], File: head[1], Pkg: path.Dir(head[1]), Test: head[2]}
	if dot := strings.LastIndexByte(m.Test, '.'); dot >= 0 {
		m.Pkg, m.Test = m.Test[:dot], m.Test[dot+1:]
	}
	if m.Pkg == rootPackage {
		m.Pkg = "."
	}
	lines := block[1:]
	if len(lines) == 3 && strings.HasPrefix(lines[0], "@ ") {
		m.At, lines = lines[0][2:], lines[1:]
	}
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "- ") || lines[1][0] != '+' {
		return Mutation{}, fmt.Errorf("want an optional line with @, one with - and one with +, and a blank line in front of the next entry")
	}
	m.Old, m.New = lines[0][2:], strings.TrimSpace(lines[1][1:])
	return m, nil
}

// Apply returns the changed source, or an error if the place is not there or not
// unique.
func (m Mutation) Apply(src string) (string, error) {
	start := 0
	if m.At != "" {
		if n := strings.Count(src, m.At); n != 1 {
			return "", fmt.Errorf("%s: %q occurs %d times in %s, want 1", m.ID, m.At, n, m.File)
		}
		start = strings.Index(src, m.At)
	} else if n := strings.Count(src, m.Old); n > 1 {
		return "", fmt.Errorf("%s: %q occurs %d times in %s, want 1", m.ID, m.Old, n, m.File)
	}
	i := strings.Index(src[start:], m.Old)
	if i < 0 {
		return "", fmt.Errorf("%s: %q does not occur in %s", m.ID, m.Old, m.File)
	}
	i += start
	return src[:i] + m.New + src[i+len(m.Old):], nil
}
