package sctpudp

import (
	"encoding/binary"
	"net"
	"syscall"
)

// hearRefusals makes the system report, or no longer report, what ICMP says about packets that
// were sent. The system stores no more of these reports than of received packets.
func hearRefusals(pc net.PacketConn, on bool) {
	v := 0
	if on {
		v = 1
	}
	control(pc, func(fd int) {
		_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, syscall.IP_RECVERR, v)
		_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, syscall.IPV6_RECVERR, v)
	})
}

// refusals calls told with what ICMP has quoted of each packet that found no port.
func refusals(pc net.PacketConn, told func(quoted []byte)) {
	control(pc, func(fd int) {
		var quoted, control [512]byte
		for {
			n, c, _, _, err := syscall.Recvmsg(fd, quoted[:], control[:], syscall.MSG_ERRQUEUE|syscall.MSG_DONTWAIT)
			if err != nil {
				return
			}
			if isRefusal(control[:c]) {
				told(quoted[:n])
			}
		}
	})
}

func control(pc net.PacketConn, f func(fd int)) {
	c, ok := pc.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}

// isRefusal reports whether control contains a struct sock_extended_err that reports a closed port.
func isRefusal(control []byte) bool {
	const size, origin = 16, 4 // of the structure, and where it names the source of the error
	messages, err := syscall.ParseSocketControlMessage(control)
	if err != nil {
		return false
	}
	for _, m := range messages {
		is4 := m.Header.Level == syscall.IPPROTO_IP && m.Header.Type == syscall.IP_RECVERR
		is6 := m.Header.Level == syscall.IPPROTO_IPV6 && m.Header.Type == syscall.IPV6_RECVERR
		if (is4 || is6) && len(m.Data) >= size && syscall.Errno(binary.NativeEndian.Uint32(m.Data)) == syscall.ECONNREFUSED {
			return m.Data[origin] == icmp4 || m.Data[origin] == icmp6
		}
	}
	return false
}

// SO_EE_ORIGIN_ICMP and SO_EE_ORIGIN_ICMP6.
const icmp4, icmp6 = 2, 3
