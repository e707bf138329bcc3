//go:build !linux

package transport

import "net"

func infoOfConn(net.Conn) (i TCPInfo, ok bool) { return i, false }
