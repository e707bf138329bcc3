package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestConformance checks the ledger of the tree: every requirement is shown or excused, and the report says so.
func TestConformance(t *testing.T) {
	root := filepath.Join("..", "..")
	l, err := load(root)
	require.NoError(t, err)
	require.Empty(t, l.problems())
	got, err := os.ReadFile(filepath.Join(root, reportFile))
	require.NoError(t, err)
	require.Equal(t, string(l.report()), string(got), "stale: run go run ./internal/conformance")
}
