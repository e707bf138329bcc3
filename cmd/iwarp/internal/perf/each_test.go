package perf

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEach(t *testing.T) {
	xs := make([]int, 64)
	for i := range xs {
		xs[i] = i
	}
	var seen [64]bool
	mark := func(i int) error {
		seen[i] = true
		if i%32 == 31 {
			return net.ErrClosed
		}
		return nil
	}
	require.EqualError(t, each(xs, mark), net.ErrClosed.Error()+"\n"+net.ErrClosed.Error(), "all errors")
	require.NotContains(t, seen[:], false, "all of them are called")
	nothing := func(int) error { return nil }
	require.Less(t, testing.AllocsPerRun(10, func() { _ = each(xs, nothing) }), 16.0, "a run of 64 connections is not measured with its own allocations")
}
