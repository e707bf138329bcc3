// Package damage ends or damages connections on purpose.
//
// A [Line] stands between the two ends of a connection over TCP or a pipe. It counts the octets of each end, and does
// what it was told behind the last one of so many. [Sockets] does the same with the datagrams of SCTP over UDP.
package damage

import "time"

// What happens behind the last octet, or datagram, that passes.
const (
	Reset     = "reset"   // the connection is reset
	FIN       = "fin"     // both ends are closed
	Corrupt   = "corrupt" // the next octet, or an octet of the next datagram, is another one
	Stall     = "stall"   // what follows is late
	HalfClose = "half"    // nothing of this end passes any more; on a Line its half is closed
	Vanish    = "vanish"  // nothing of either end passes any more
	Lose      = "lose"    // of Sockets: the next datagram is lost
	Address   = "address" // of Sockets: what follows comes from another address
	Abort     = "abort"   // of Sockets: the next datagram is an ABORT of its SCTP association instead
)

// For is how long a stall lasts.
const For = 20 * time.Millisecond
