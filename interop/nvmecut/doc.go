// Package nvmecut is the host of the NVMe power-cut test: it writes numbered blocks to a target, remembers which of them the
// target has made durable, and checks them when the target is back.
//
// A block is one LBA of 512 octets, which a disk writes as a whole or not at all. Its contents name the LBA and its version. A
// version is durable when a Write with FUA was answered, or a Flush that was sent after the answer to the Write.
//
// When the power is back, each LBA must hold the whole of one version: the last durable one, or one that was sent after
// it.
package nvmecut
