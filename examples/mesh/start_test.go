package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProcessThatDoesNotStart: the error is the reason alone.
func TestProcessThatDoesNotStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := spawn(ctx, 0)
	require.Equal(t, context.Canceled, err)
}
