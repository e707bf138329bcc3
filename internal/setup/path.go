package setup

import (
	"strings"

	"github.com/goiwarp/iwarp/internal/logkey"
	"github.com/goiwarp/iwarp/transport"
)

// logPath logs, once for each path, that connections could be driven faster if they were not
// wrapped, or if the process had file descriptors left.
func (m *Manager) logPath(path string) {
	if !transport.HasRawTCP || m.cfg.PlainIO || !strings.HasPrefix(path, transport.PathNetConn) {
		return
	}
	m.mu.Lock()
	_, logged := m.slowPaths[path]
	m.slowPaths[path] = struct{}{}
	m.mu.Unlock()
	if !logged {
		m.cfg.Log.Info("connections are driven through package net, not by system calls on a *net.TCPConn", logkey.Path, path)
	}
}
