package iwarp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVERBS_73_StatusesAreThoseOfLibibverbs: by number; each has a name of its own.
func TestVERBS_73_StatusesAreThoseOfLibibverbs(t *testing.T) {
	names := make(map[string]bool)
	for status, number := range map[Status]uint8{
		StatusSuccess:         0,
		StatusLocalLength:     1,
		StatusLocalOp:         2,
		StatusLocalProtection: 4,
		StatusFlushed:         5,
		StatusBind:            6,
		StatusBadResponse:     7,
		StatusLocalAccess:     8,
		StatusRemoteInvalid:   9,
		StatusRemoteAccess:    10,
		StatusRemoteOp:        11,
		StatusNoReceive:       13,
	} {
		require.EqualValues(t, number, status, "%v", status)
		require.NotContains(t, status.String(), "Status(")
		names[status.String()] = true
	}
	require.Len(t, names, 12)
}
