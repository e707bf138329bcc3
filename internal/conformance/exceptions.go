package main

import (
	"fmt"
	"regexp"
	"strings"
)

// exceptionLine is "* DDP-8 — reason"; the star is optional.
var exceptionLine = regexp.MustCompile(`^(?:\* )?([A-Z]+[0-9]?[A-Z]*-[0-9]+) — (.+)$`)

// startsLikeException distinguishes lines that were meant as exceptions from prose.
var startsLikeException = regexp.MustCompile(`^(?:\* )?[A-Z]+[0-9]?[A-Z]*-[0-9]`)

// parseExceptions reads the reasons why requirements have no test. Lines that do
// not begin with a requirement number are prose for people.
func parseExceptions(text string) (map[string]string, error) {
	reasons := make(map[string]string)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		m := exceptionLine.FindStringSubmatch(line)
		if m == nil {
			if startsLikeException.MatchString(line) {
				return nil, fmt.Errorf("%s: want %q, got %q", exceptionsFile, "* ID — reason", line)
			}
			continue
		}
		if _, twice := reasons[m[1]]; twice {
			return nil, fmt.Errorf("%s: %s stands there twice", exceptionsFile, m[1])
		}
		reasons[m[1]] = m[2]
	}
	return reasons, nil
}
