package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// everything returns a profile in which half of mpa and all of the other packages was executed.
func everything() profile {
	p := make(profile)
	for _, name := range packages {
		p[module+"/"+name+"/a.go:3.5,9.2"] = block{4, name != "mpa"}
	}
	p[module+"/mpa/b.go:1.2,3.4"] = block{4, true}
	p[module+"/mpa/inner/b.go:1.2,3.4"] = block{4, false}
	return p
}

func TestReport(t *testing.T) {
	var out strings.Builder
	require.NoError(t, everything().report(&out, 50, true))
	require.Contains(t, out.String(), "mpa              50.0 %      4 of     8 statements\n    mpa/a.go:3.5,9.2\n")
	require.Contains(t, out.String(), "rma             100.0 %      4 of     4 statements\n")
	require.ErrorContains(t, everything().report(&out, 50.1, false), "less than 50.1 %: mpa")
	require.ErrorContains(t, make(profile).report(&out, 50, false), "mpa: no statements")
}

// TestProfilesAreMerged: code that one of the profiles marks as executed was executed.
func TestProfilesAreMerged(t *testing.T) {
	p := make(profile)
	require.NoError(t, p.add("mode: set\nm/a.go:10.2,11.3 2 0\nm/a.go:9.2,9.3 1 1\n"))
	require.NoError(t, p.add("mode: set\nm/a.go:10.2,11.3 2 7\nm/a.go:9.2,9.3 1 0\nm/a.go:12.2,12.3 1 0\n"))
	all, executed := p.count()
	require.Equal(t, []int{4, 3}, []int{all, executed})
	require.Equal(t, []string{"m/a.go:12.2,12.3"}, p.missing())
	require.ErrorContains(t, p.add("mode: set\nnonsense"), "line 2")
	require.ErrorContains(t, p.add("m/a.go:1.1,2.2 two 1"), "line 1")
}
