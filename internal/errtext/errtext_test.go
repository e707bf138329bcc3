package errtext

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlainNamesNoPackage(t *testing.T) {
	for text, want := range map[string]string{
		"iwarp: RNIC closed":         "RNIC closed",
		"iwarp: mpa: no Reply":       "no Reply",
		"dial: mpa: no Reply":        "dial: mpa: no Reply",
		"connection refused":         "connection refused",
		"sctp: the peer has refused": "the peer has refused",
	} {
		require.Equal(t, want, Plain(errors.New(text)))
	}
}

func TestClauseNamesNoPackage(t *testing.T) {
	err := Clause(fmt.Errorf("iwarp: deep below: %w", io.EOF))
	require.EqualError(t, err, "deep below: EOF")
	require.ErrorIs(t, err, io.EOF)
}

func TestRewordKeepsTheChain(t *testing.T) {
	err := Reword(fmt.Errorf("deep below: %w", io.EOF), "the peer has ended the connection")
	require.EqualError(t, err, "the peer has ended the connection")
	require.ErrorIs(t, err, io.EOF)
}

func TestOneLineIsNothingThatATerminalObeys(t *testing.T) {
	require.Equal(t, "a; b \ufffd[31m\ufffd c", OneLine("a\r\n\nb \x1b[31m\u009b c"))
}
