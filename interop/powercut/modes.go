package powercut

import "strings"

// Sign begins each message of the target on its console.
const Sign = "powerguest:"

// The kinds of backing with which the target opens its file; see package commit.
const (
	Mapped     = "map"
	Positioned = "file"
	Direct     = "direct"
)

// Backings lists the backings, which take turns from boot to boot.
func Backings() string { return strings.Join(backings, ", ") }

// BackingOf returns the backing of a boot.
func BackingOf(boot int) string { return backings[boot%len(backings)] }

var backings = []string{Mapped, Positioned, Direct}

// What can be omitted on purpose, to check that the loss is detected.
const (
	Honest    = "none"
	NoSync    = "nosync"    // Commit answers without any sync
	Async     = "async"     // msync(MS_ASYNC) in place of a sync
	NoBarrier = "nobarrier" // the file system does not flush the disk's cache
	LyingDisk = "lyingdisk" // the disk reports a flush of its cache without doing it
)

// Sabotages lists them.
var Sabotages = []string{Honest, NoSync, Async, NoBarrier, LyingDisk}

// What can be omitted when files are made.
const (
	NoNameSync   = "nodirsync"    // the sync of the directory that a file is in
	NoCreateSync = "nocreatesync" // that, and the sync of the file
)

// CreationSabotages lists what can be omitted when files are made.
var CreationSabotages = []string{Honest, NoNameSync, NoCreateSync}

// The file systems that files are made on. A sync of a file of ext4 makes its name durable, too;
// on minix that takes a sync of the directory.
const (
	Ext4  = "ext4"
	Minix = "minix"
)

// What the target reports about a file, with its name and size: that it is made, or grown, and
// durable; and that it exists when the power is back.
const (
	Created = Sign + " created"
	There   = Sign + " there"
)

// Marks in the written data tell the disk of the fault cases how to fail, so that the disk
// and the target need no other agreement.
const (
	FailWrite = "let the write of this fail"        // of the sector, each time
	FailFlush = "let the flush after this one fail" // once
	Seal      = "take no more writes from this on"  // of any sector
)

// Faults lists the fault cases, in order. Each has its own disk, the one with the same
// index.
var Faults = []string{
	"full/reserved", "full/holes", "eio/write/map", "eio/write/file", "eio/write/direct", "eio/flush",
	"eio/device", "sealed/map", "sealed/file", "truncated/map", "device", "pmem", "pmem/refused", "aborted/map", "aborted/file",
	"readonly/map", "readonly/file",
}

// InPMem is the record that the host searches for in the memory of the NVDIMM.
const InPMem = "a record in persistent memory, written back from the cache"
