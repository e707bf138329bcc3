// Package nvmecut is the host of the power-cut test of NVMe: it writes numbered blocks to a target, remembers which of them the
// target has made durable, and looks for them when the target is there again.
//
// A block is one LBA of 512 octets: what a disk writes as a whole or not at all. Its contents name the LBA and its version. A
// version is durable when a Write with FUA was answered, or a Flush that was sent after the answer to the Write.
//
// What must hold when the power is back: each LBA has one version, whole, that is the last durable one or one that was sent
// after it.
package nvmecut
