// Package wire reads from a capture what one end of a connection has sent, and compares it with
// what that end must send. It has a decoder of its own, written from RFC 5040, RFC 5041, RFC 5044
// and RFC 6581, and shares no code of these protocols with the library: a mistake that the
// library makes when it sends as well as when it receives is seen here.
package wire
