// Package peer contains what measurements between two processes share: starting and ending
// the other end, what a process uses, and connections with the same congestion control
// at both ends.
package peer
