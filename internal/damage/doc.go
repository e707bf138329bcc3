// Package damage ends or damages connections on purpose.
//
// A [Line] stands between the two ends of a connection over TCP or a pipe. It counts the octets of each end, and damages
// or ends the connection after a given number. [Sockets] does the same with the datagrams of SCTP over UDP.
package damage

import "time"

// What happens after the last octet or datagram that passes.
const (
	Reset     = "reset"   // the connection is reset
	FIN       = "fin"     // both ends are closed
	Corrupt   = "corrupt" // the next octet, or an octet of the next datagram, is changed
	Stall     = "stall"   // the octets or datagrams that follow are delayed
	HalfClose = "half"    // nothing from this end passes any more; on a Line its half is closed
	Vanish    = "vanish"  // nothing from either end passes any more
	Lose      = "lose"    // Sockets only: the next datagram is lost
	Address   = "address" // Sockets only: the datagrams that follow come from another address
	Abort     = "abort"   // Sockets only: an ABORT of its SCTP association replaces the next datagram
)

// For is how long a stall lasts.
const For = 20 * time.Millisecond
