package cm_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
)

// TestMisuseIsRefused: a Config without keys is refused when the Auth is made, not when a peer comes.
func TestMisuseIsRefused(t *testing.T) {
	for want, cfg := range map[string]*cm.Config{
		"cm: Config.Ring is nil":                                  nil,
		"cm: Config.Ring has no keys: it was not made by NewRing": {Ring: new(cm.Ring)},
	} {
		_, err := cm.New(cfg)
		require.EqualError(t, err, want)
	}
}

// TestInFlightIsBounded: and so is the memory that is allocated for it.
func TestInFlightIsBounded(t *testing.T) {
	for target, result := range cm.DialMany(t.Context(), slices.Values([]cm.Target{{Network: "pipe", Addr: "x"}}), &cm.Options{InFlight: math.MaxInt, Ordered: true}) {
		require.Error(t, result.Err, target)
	}
	for _, err := range cm.DisconnectMany(t.Context(), slices.Values([]*iwarp.QP{nil}), &cm.DisconnectOptions{InFlight: math.MaxInt}) {
		require.EqualError(t, err, "cm: disconnect: the QP is nil")
	}
}
