package main

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

var errFull = errors.New("no space left on device")

// A fullDisk accepts no octets.
type fullDisk struct{ io.Writer }

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// TestUnprintedResult: a command whose result could not be printed has failed.
func TestUnprintedResult(t *testing.T) {
	s := serve(t, "-backing", "mem:1MiB")
	for _, args := range [][]string{
		{"discover", s.addr},
		{"list", s.addr},
		{"id", s.addr},
		{"id", s.addr, "-nsid", "1"},
		{"log", s.addr},
		{"read", s.addr, "-length", "4KiB"},
		{"verify", s.addr, "-time", "1ms", "-jobs", "1"},
	} {
		err := run(t.Context(), args, &streams{in: new(bytes.Reader), out: fullDisk{}, diag: io.Discard})
		require.ErrorIs(t, err, errFull, "%q", args)
		require.ErrorContains(t, err, args[0]+": ", "%q", args)
	}
}
