// Package powercut is the two ends of the power-cut test: a target, whose power is cut,
// and a requester that writes records to it, remembers which of them the target has
// acknowledged, and looks for them when the target is there again.
//
// The file that they share has an area for each of a few connections:
//
//	0        4096                                                  areaLen
//	+--------+-----------+-----------+--- ... ---+-----------+------+
//	| tail   | slot 0    | slot 1    |           | slot 47   |      |
//	+--------+-----------+-----------+--- ... ---+-----------+------+
//
// Record n goes to slot n modulo 48, which begins at no boundary of sectors or pages, in two
// RDMA Writes with a Commit after them. On every other connection the Commit's follow-on
// moves the tail to n. A few records of each connection are under way at any time.
//
// What must hold when the power is back: a record whose Commit was answered is whole, unless a
// later one was written over it; the tail is that of the last answered Commit or of one
// after it; and every record of that life up to the tail is whole, answered or not.
package powercut
