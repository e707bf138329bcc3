// Package peer is what measurements between two processes share: how the other end is
// started and ended, and connections whose both ends have the same congestion control.
package peer
