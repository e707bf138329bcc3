package transport

import "time"

// TCPInfo is what the kernel tells of a TCP connection.
type TCPInfo struct {
	RTT, RTTVar time.Duration // the round trip, smoothed, and its variation
	Retransmits uint64        // segments that were sent again
	Unacked     uint64        // segments that are not acknowledged
	Window      uint64        // the congestion window, in segments
}

// InfoOf asks the kernel about the TCP connection of an LLP, or of a [Stream]. It reports false where there is none, or
// no more, and on systems other than Linux.
func InfoOf(of any) (i TCPInfo, ok bool) {
	if s, is := of.(interface{ TCPInfo() (TCPInfo, bool) }); is {
		return s.TCPInfo()
	}
	return i, false
}
