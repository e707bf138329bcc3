// Package backend provides the media of NVMe namespaces: memory, files, block devices, and a fake
// for tests that fails and loses power on demand.
//
// [Open] makes a [Backend] from a command-line argument:
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
// A logical block is read and written as a whole. If reads and writes of one block are concurrent,
// each read returns the whole of one write, and the final contents are the whole of one write.
// Nothing more is guaranteed: two writes of many blocks may mix block by block (NVM Express Base
// 2.0, AWUN of one block). After a power cut this holds only as far as the medium guarantees it: a
// disk with sectors of 512 octets may keep a part of a block of 4096.
//
// # Durability
//
// A volatile Backend has a cache whose contents a power cut destroys. [Backend.Flush] makes durable
// everything that was completed before it was called, and a write with FUA is durable when it
// returns. Simultaneous Flushes share one sync. A Flush never relies on a sync that may have begun
// before a write that was completed before the Flush. It needs no sync if nothing has been written
// since the last one.
//
// A sync that fails is not repeated: the system drops pages that it could not write, and reports
// success for the next sync. All Flushes that share the failed sync return [ErrSync]. From then on
// the Backend has failed: it still reads, but everything else returns [ErrFailed], until it is
// closed and opened again.
//
// # Zeros
//
// Octets that were never written, were trimmed, or were made zeros read as zeros, at once and after
// the Backend is opened again; [Traits] describes the only exception.
//
// # Errors
//
// Every error of an operation is an [*Error] of one of the kinds that this package declares. A
// target answers them with these NVMe statuses:
//
//	ErrNoSpace                        0x081 Capacity Exceeded
//	ErrReadOnly                       0x020 Namespace is Write Protected
//	ErrOutOfRange                     0x080 LBA Out of Range
//	ErrWrite, ErrSync, ErrFailed      0x280 Write Fault
//	ErrRead                           0x281 Unrecovered Read Error
//	ErrUnaligned, ErrClosed, others   0x006 Internal Error
package backend
