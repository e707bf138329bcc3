// Package stream is the protocol of one end of an rsocket, without a connection: it is told of what
// has come and what the program does, and says what is to be sent next. It has no goroutine, socket
// or clock, and touches none of the octets that it accounts for.
//
// The octets of each direction pass through a ring of the receiver. Its two halves are told to the
// sender in turn, by a slot that is written into the sender's table and the message behind it. The
// sender fills a half completely before it goes on to the next one.
//
// A Stream is not safe for concurrent use.
package stream
