package transport

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// askTCP returns the TCP_INFO of a descriptor.
func askTCP(fd int) (TCPInfo, bool) {
	i, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return TCPInfo{}, false
	}
	return TCPInfo{
		RTT: time.Duration(i.Rtt) * time.Microsecond, RTTVar: time.Duration(i.Rttvar) * time.Microsecond,
		Retransmits: uint64(i.Total_retrans), Unacked: uint64(i.Unacked), Window: uint64(i.Snd_cwnd),
	}, true
}

// infoOfConn asks about a net.Conn, or about the net.Conn below it.
func infoOfConn(c net.Conn) (i TCPInfo, ok bool) {
	switch c := c.(type) {
	case syscall.Conn:
		raw, err := c.SyscallConn()
		if err != nil {
			return i, false
		}
		_ = raw.Control(func(fd uintptr) { i, ok = askTCP(int(fd)) }) // if it fails ok is false
		return i, ok
	case interface{ NetConn() net.Conn }:
		return infoOfConn(c.NetConn())
	}
	return i, false
}
