package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRPR_1_PrivateData is encoded and decoded as in the captures, also behind octets of another layer, and other octets do
// not count as private data.
func TestRPR_1_PrivateData(t *testing.T) {
	for digits, want := range map[string]Private{
		"f6ab0e18 01010303":              {Invalidate: true, Send: 4096, Receive: 4096},
		"f6ab0e18 01010000":              {Invalidate: true, Send: 1024, Receive: 1024},
		"f6ab0e18 01000303":              {Send: 4096, Receive: 4096},
		"f6ab0e18 01fe0f3f":              {Send: 16384, Receive: 65536},
		"f6ab0e18 01010303 ffffffffffff": {Invalidate: true, Send: 4096, Receive: 4096},
		"":                               {Send: 1024, Receive: 1024},
		"f6ab0e18 010103":                {Send: 1024, Receive: 1024},
		"f6ab0e18 02010303":              {Send: 1024, Receive: 1024},
		"f6ab0e19 01010303":              {Send: 1024, Receive: 1024},
		"00800000 f6ab0e18 01010303":     {Invalidate: true, Send: 4096, Receive: 4096},
		"f6 f6ab0e18 01000f0f 00":        {Send: 16384, Receive: 16384},
		"00000000 f6ab0e18 010103":       {Send: 1024, Receive: 1024},
	} {
		b := octets(digits)
		require.Equal(t, want, ParsePrivate(b), digits)
	}
	require.Equal(t, octets("f6ab0e18 01000303"), Private{Send: 4096, Receive: 4096}.Append(nil), "of the server in the captures")
	require.Equal(t, octets("f6ab0e18 0101ff00"), Private{Invalidate: true, Send: MaxInline, Receive: Unit}.Append(nil))
}
