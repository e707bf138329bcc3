// Package backend has the media that NVMe namespaces are made of: memory, files, block devices,
// and a fake for tests that fails and loses power on demand.
//
// [Open] makes a [Backend] of what a command line says:
//
//	mem:1GiB                         memory, allocated when it is written
//	mem:1TiB,cap=4GiB                of which at most 4 GiB are ever allocated
//	file:/srv/disk.img,size=10GiB    a file, which is made, or grown, to 10 GiB
//	file:/srv/disk.img,ro,bs=512     read-only, with logical blocks of 512 octets
//	block:/dev/sdb,direct            a block device, past the page cache
//
// See [Spec] for all options.
//
// # Atomicity
//
// A logical block is read and written as a whole. Of concurrent reads and writes of one block
// each read returns all of one write or all of another, and what stays is all of one of them.
// Nothing more is promised: two writes of many blocks may mix block by block (NVM Express Base
// 2.0, AWUN of one block). After a power cut this holds as far as the medium keeps it: a disk
// with sectors of 512 octets may keep a part of a block of 4096.
//
// # Durability
//
// A Backend that is volatile has a cache that a power cut loses. [Backend.Flush] makes durable
// all that was completed before it was called, and a write with FUA is durable when it
// returns. Flushes that come at the same time share one sync. A Flush never relies on a sync that
// may have begun before a write that was completed before the Flush. It needs no sync if
// nothing has been written since the last one.
//
// A sync that fails is not repeated: the system drops pages that it could not write and calls the
// next sync a success. All Flushes that share the failed sync return [ErrSync]. From then on the
// Backend has failed: it still reads, and all else returns [ErrFailed], until it is closed and
// opened again.
//
// # Zeros
//
// What was never written, was trimmed, or was made zeros reads as zeros, at once and after the
// Backend is opened again; [Traits] tells of the one exception.
//
// # Errors
//
// Every error of an operation is an [*Error], of one of the kinds that this package
// declares. A target answers them with these statuses of NVMe:
//
//	ErrNoSpace                        0x081 Capacity Exceeded
//	ErrReadOnly                       0x020 Namespace is Write Protected
//	ErrOutOfRange                     0x080 LBA Out of Range
//	ErrWrite, ErrSync, ErrFailed      0x280 Write Fault
//	ErrRead                           0x281 Unrecovered Read Error
//	ErrUnaligned, ErrClosed, others   0x006 Internal Error
package backend
