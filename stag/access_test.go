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
