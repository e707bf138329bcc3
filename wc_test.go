package iwarp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// TestVERBS_73_StatusesAreThoseOfLibibverbs: by number. Each has its own name.
func TestVERBS_73_StatusesAreThoseOfLibibverbs(t *testing.T) {
	names := make(map[string]bool)
	for status, number := range map[iwarp.Status]uint8{
		iwarp.StatusSuccess:         0,
		iwarp.StatusLocalLength:     1,
		iwarp.StatusLocalOp:         2,
		iwarp.StatusLocalProtection: 4,
		iwarp.StatusFlushed:         5,
		iwarp.StatusBind:            6,
		iwarp.StatusBadResponse:     7,
		iwarp.StatusLocalAccess:     8,
		iwarp.StatusRemoteInvalid:   9,
		iwarp.StatusRemoteAccess:    10,
		iwarp.StatusRemoteOp:        11,
		iwarp.StatusNoReceive:       13,
	} {
		require.EqualValues(t, number, status, "%v", status)
		require.NotContains(t, status.String(), "Status(")
		names[status.String()] = true
	}
	require.Len(t, names, 12)
}
