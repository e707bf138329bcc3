package setup

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

// TestSlowPathIsLogged: once, unless no faster path exists or PlainIO is set.
func TestSlowPathIsLogged(t *testing.T) {
	for _, plain := range []bool{false, true} {
		var log bytes.Buffer
		m := newManager(t)
		m.cfg.Log, m.cfg.PlainIO = slog.New(slog.NewTextHandler(&log, nil)), plain
		want := 1
		if plain || !transport.HasRawTCP {
			want = 0
		}
		for range 2 {
			m.logPath(transport.PathNetConn + " (*wrapped)")
			m.logPath("raw TCP")
			require.Equal(t, want, strings.Count(log.String(), "driven through package net"))
		}
	}
}
