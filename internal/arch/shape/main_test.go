package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const dir = "../../.."

func TestShape(t *testing.T) {
	var b strings.Builder
	require.NoError(t, run(&b, dir, []string{".", "./stag"}, true))
	for _, want := range []string{
		"package " + module + " ", "package " + module + "/stag ", "< 15 %", "<= 4000", "Arrows up, with uses:", "Arrows without calls, with uses:",
		"atomics of the engine", "QP.conn", "mutexes of . (", "Functions of more than 60 lines",
	} {
		require.Contains(t, b.String(), want)
	}
	require.Error(t, run(&b, dir, []string{"./nothing"}, false))
}

func TestPlacesOfAWord(t *testing.T) {
	var b strings.Builder
	require.NoError(t, printWord(&b, dir, "prose command shape prints"))
	require.Contains(t, b.String(), "internal/arch/shape/main.go:1: command shape prints what")
	require.Error(t, printWord(&b, dir, "command"))
}
