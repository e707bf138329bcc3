// Package stag is memory as the wire sees it: steering tags, access rights, the
// regions behind them, and the one check that every remote access passes
// (RFC 5040 section 8.1.1, RFC 5042 section 6).
//
// A [Region] is a run of octets with a base tagged offset (TO), rights, and a
// [Scope]; its octets are memory or a [Buffer], such as a file. A [Table] finds
// regions by [STag]. [Table.Pin] checks an access and holds the region for the
// moment of one placement; a pin is never held while anything waits, so
// Invalidate is quick. A [Region.Hold] keeps the octets themselves in place while a
// work request that was already handed to the network still refers to them.
package stag
