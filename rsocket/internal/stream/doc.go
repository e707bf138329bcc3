// Package stream implements the protocol of one end of an rsocket, without a connection: its caller reports
// what has arrived and what the program does, and asks what is to be sent next. It has no goroutine, socket
// or clock, and touches none of the octets that it accounts for.
//
// The octets of each direction pass through a ring of the receiver. The receiver tells the sender its two
// halves in turn: it writes a slot into the sender's table, and sends a message behind it. The
// sender fills a half completely before it goes on to the next one.
//
// A Stream is not safe for concurrent use.
package stream
