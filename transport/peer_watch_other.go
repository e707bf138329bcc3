//go:build !linux || purego

package transport

import "net"

// A peerWatch enforces the peer timeout of a TCP connection. This build has none: only the
// limits of the system apply.
type peerWatch struct{}

func peerWatchOf(net.Conn, *Poller) *peerWatch { return nil }

func (*peerWatch) begin() {}

func (*peerWatch) end() {}

func (*peerWatch) timedOut(_ string, err error) error { return err }
