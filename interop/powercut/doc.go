// Package powercut implements both ends of the power-cut test: a target, whose power is
// cut, and a requester that writes records to it, remembers which of them the target has
// acknowledged, and checks them when the target is back.
//
// The file that they share has an area for each of a few connections:
//
//	0        4096                                                  areaLen
//	+--------+-----------+-----------+--- ... ---+-----------+------+
//	| tail   | slot 0    | slot 1    |           | slot 47   |      |
//	+--------+-----------+-----------+--- ... ---+-----------+------+
//
// Record n goes to slot n modulo 48, which does not begin at a sector or page boundary, in two
// RDMA Writes followed by a Commit. On every other connection the Commit's follow-on moves the
// tail to n. A few records of each connection are outstanding at any time.
//
// When the power is back, a record whose Commit was answered must be whole, unless a later one
// was written over it. The tail must be that of the last answered Commit or of a later one. And
// every record of that life up to the tail must be whole, answered or not.
package powercut
