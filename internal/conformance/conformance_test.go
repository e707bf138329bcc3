package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestConformance checks the ledger of the tree: every requirement is shown or excused, and the report says so.
func TestConformance(t *testing.T) {
	root := filepath.Join("..", "..")
	l, err := load(root)
	require.NoError(t, err)
	require.Empty(t, strings.Join(l.problems(), "\n"))
	got, err := os.ReadFile(filepath.Join(root, reportFile))
	require.NoError(t, err)
	// Not by Equal, which would print both reports.
	require.True(t, bytes.Equal(l.report(), got), "%s is stale: go run ./internal/conformance", reportFile)
}
