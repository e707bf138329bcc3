// Package errtext shapes the texts of errors. A text names the library once, and says in plain
// words what has happened and what to do about it. The error chain stays complete.
package errtext

import (
	"net"
	"strconv"
	"strings"
	"unicode"
)

// prefixes are the package names with which the texts of the packages' own errors begin.
var prefixes = [...]string{"iwarp: ", "stag: ", "commit: ", "mpa: ", "sctp: ", "transport: "}

// Plain returns the text of err without the name of a package in front, for use after a colon.
func Plain(err error) string {
	s := err.Error()
	for _, prefix := range prefixes {
		s = strings.TrimPrefix(s, prefix)
	}
	return s
}

// Clause returns an error that wraps err and whose text lacks the name of the package, for use
// after a colon in the text of another error.
func Clause(err error) error { return clause{err} }

type clause struct{ error }

func (c clause) Error() string { return Plain(c.error) }
func (c clause) Unwrap() error { return c.error }

// Reword returns an error that wraps err and has the given text.
func Reword(err error, text string) error { return &reworded{text, err} }

// A reworded error has its own text instead of the text of the chain.
type reworded struct {
	text string
	err  error
}

func (e *reworded) Error() string { return e.text }
func (e *reworded) Unwrap() error { return e.err }

// An Aborted is the error of a connection that was aborted. It matches Cause, which may be nil, and net.ErrClosed.
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

// OneLine returns the text without line breaks and terminal control characters: a part of it may come from the peer.
func OneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
