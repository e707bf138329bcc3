// Package peer is what measurements between two processes share: how the other end is
// started and ended, what a process uses, and connections whose both ends have the same
// congestion control.
package peer
