// Package wire reads from a capture what one end of a connection has sent, and compares it with
// what that end must send. It has its own decoder, written from RFC 5040, RFC 5041, RFC 5044 and
// RFC 6581, and shares no protocol code with the library. So it detects a mistake that the library
// makes both when it sends and when it receives.
package wire
