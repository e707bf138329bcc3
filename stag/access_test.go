package stag

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAccessString(t *testing.T) {
	for want, a := range map[string]Access{
		"LocalRead":                0,
		"LocalWrite|RemoteRead":    LocalWrite | RemoteRead,
		"RemoteWrite|RemoteAtomic": RemoteWrite | RemoteAtomic,
		"MWBind|unknown":           MWBind | 1<<20,
	} {
		require.Equal(t, want, a.String())
	}
}

func TestStringsOfSTagAndViolation(t *testing.T) {
	require.Equal(t, "0x0000120a", STag(0x120a).String(), "all eight digits are shown")
	require.Equal(t, uint32(0x12), STag(0x120a).Index())
	require.Equal(t, uint8(0x0a), STag(0x120a).Key())
	seen := map[string]bool{}
	for v := None; v <= NotInvalidatable; v++ {
		require.NotEmpty(t, v.String())
		require.False(t, seen[v.String()], "%v has a text of its own", v)
		seen[v.String()] = true
	}
	require.Equal(t, "Violation(99)", Violation(99).String())
}

func TestVERBS_6_RightsThatContradictAreRefused(t *testing.T) {
	table := NewTable()
	for a := range allAccess << 2 {
		_, err := table.Register(make([]byte, 1), Options{Access: a})
		peerWrites := a&RemoteWrite != 0 || a&RemoteAtomic != 0
		switch {
		case a > allAccess:
			require.Error(t, err, "%v has an unknown right", a)
		case peerWrites && a&LocalWrite == 0:
			require.Error(t, err, "%v lets the peer write what may not be written", a)
		default:
			require.NoError(t, err, "%v is sound", a)
		}
	}
}
