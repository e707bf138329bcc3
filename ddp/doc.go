// Package ddp is Direct Data Placement (RFC 5041): it steers the octets of each
// segment straight to where they belong, in a tagged buffer named by STag and
// tagged offset, or in the untagged buffer that a queue holds for a message
// number, and delivers messages in the order in which the peer sent them.
//
// The package does no IO and starts no goroutine. Below it stands a
// [transport.LLP]; above it an upper layer such as RDMAP, which need not be RDMAP.
package ddp
