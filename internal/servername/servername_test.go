package servername

import (
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFor(t *testing.T) {
	require.Nil(t, For(nil, "host:1"))
	open := &tls.Config{NextProtos: []string{"x"}}
	for addr, name := range map[string]string{"host.test:1": "host.test", "[::1]:1": "::1", "192.0.2.1:1": "192.0.2.1", "a pipe": "", ":1": "", "[fe80::1%eth0]:1": "fe80::1"} {
		c := For(open, addr)
		require.Equal(t, name, c.ServerName, addr)
		require.Equal(t, open.NextProtos, c.NextProtos)
	}
	require.Empty(t, open.ServerName, "the configuration is not changed")
	named := &tls.Config{ServerName: "other.test"}
	require.Same(t, named, For(named, "host.test:1"))
}
