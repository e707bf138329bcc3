package sctpkernel

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddresses(t *testing.T) {
	for text, want := range map[string]Addr{
		"127.0.0.1:7":           {IPs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Port: 7},
		"10.0.0.1/10.0.1.1:7":   {IPs: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.1.1")}, Port: 7},
		"[fd00::1]/[fd01::1]:7": {IPs: []netip.Addr{netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd01::1")}, Port: 7},
		"[fe80::1%zone]:7":      {IPs: []netip.Addr{netip.MustParseAddr("fe80::1%zone")}, Port: 7},
		":7":                    {Port: 7},
	} {
		a, err := resolve(t.Context(), text)
		require.NoError(t, err)
		require.Equal(t, want, a)
		require.Equal(t, text, a.String())
	}
	for text, want := range map[string]string{":7": "127.0.0.1:7", "0.0.0.0:7": "127.0.0.1:7", "[::]:7": "[::1]:7"} {
		a, err := resolvePeer(t.Context(), text)
		require.NoError(t, err)
		require.Equal(t, want, a.String())
	}
	for _, bad := range []string{"", "127.0.0.1", "127.0.0.1:70000", "127.0.0.1:0", "/127.0.0.1:7", "127.0.0.1/:7"} {
		_, err := resolvePeer(t.Context(), bad)
		require.Error(t, err, bad)
	}
}

// TestNotifications: a truncated notification is none.
func TestNotifications(t *testing.T) {
	for n := range associationSize {
		require.Zero(t, notification([]byte{0x01, 0x80, 19: 0}[:n]).kind())
	}
	require.Equal(t, notifyAssociation, notification([]byte{0x01, 0x80, 19: 0}).kind())
	require.Zero(t, notification([]byte{0x07, 0x80, 14: 0}).kind())
	require.Equal(t, notifyAdaptation, notification([]byte{0x07, 0x80, 15: 0}).kind())
}
