package transport

import "time"

// TCPInfo is what the kernel reports about a TCP connection.
type TCPInfo struct {
	RTT, RTTVar time.Duration // the round trip, smoothed, and its variation
	Retransmits uint64        // retransmitted segments
	Unacked     uint64        // unacknowledged segments
	Window      uint64        // the congestion window, in segments
}

// InfoOf asks the kernel about the TCP connection of an LLP, or of a [Stream]. It reports false if there is no such
// connection, or no longer one, and on systems other than Linux.
func InfoOf(of any) (i TCPInfo, ok bool) {
	if s, is := of.(interface{ TCPInfo() (TCPInfo, bool) }); is {
		return s.TCPInfo()
	}
	return i, false
}
