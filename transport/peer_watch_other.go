//go:build !linux || purego

package transport

import "net"

// A peerWatch is a TCP connection whose peer timeout the library itself holds. In this build
// there is none: the system's own bounds hold.
type peerWatch struct{}

func peerWatchOf(net.Conn, *Poller) *peerWatch { return nil }

func (*peerWatch) begin() {}

func (*peerWatch) end() {}

func (*peerWatch) timedOut(_ string, err error) error { return err }
