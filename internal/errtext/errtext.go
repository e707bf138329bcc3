// Package errtext shapes the texts of errors. They name the library once, and say in plain
// words what has happened and what may be done about it; the chain behind them is complete.
package errtext

import (
	"net"
	"strconv"
	"strings"
	"unicode"
)

// prefixes are the names that stand in front of the texts of the packages' own errors.
var prefixes = [...]string{"iwarp: ", "stag: ", "commit: ", "mpa: ", "sctp: ", "transport: "}

// Plain is the text of err without the name of a package in front, as it stands behind a
// colon of ours.
func Plain(err error) string {
	s := err.Error()
	for _, prefix := range prefixes {
		s = strings.TrimPrefix(s, prefix)
	}
	return s
}

// Clause is err for the text of another error, after a colon, where it stands without the name
// of its package. The chain stays.
func Clause(err error) error { return clause{err} }

type clause struct{ error }

func (c clause) Error() string { return Plain(c.error) }
func (c clause) Unwrap() error { return c.error }

// Reword gives err a text of its own. The chain stays.
func Reword(err error, text string) error { return &reworded{text, err} }

// A reworded error has a text of its own in place of that of the chain.
type reworded struct {
	text string
	err  error
}

func (e *reworded) Error() string { return e.text }
func (e *reworded) Unwrap() error { return e.err }

// An Aborted is what is left of a connection that was aborted. It matches Cause, which may be nil, and net.ErrClosed.
type Aborted struct {
	What  string
	Cause error
}

func (e *Aborted) Error() string {
	if e.Cause == nil {
		return e.What + " aborted"
	}
	return e.What + " aborted: " + e.Cause.Error()
}

// Unwrap returns Cause and net.ErrClosed.
func (e *Aborted) Unwrap() []error {
	if e.Cause == nil {
		return []error{net.ErrClosed}
	}
	return []error{e.Cause, net.ErrClosed}
}

// Depth formats an IRD or ORD that the peer has sent.
func Depth(n int) string {
	if n < 0 {
		return "not specified"
	}
	return strconv.Itoa(n)
}

// OneLine is the text without line breaks, and without what a terminal would obey: a part of it may be the peer's.
func OneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
