package kv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// The memory of a tenant, which clients read: an index of buckets, and blocks of values after it.
// Integers are little endian. A bucket has four entries,
//
//	+-----------+--------------+---------+------------+-----------+-------------+
//	| state (1) | overflow (1) | tag (2) | length (4) | block (4) | version (4) |
//	+-----------+--------------+---------+------------+-----------+-------------+
//
// of which the first one's overflow says that keys of this bucket are in the next one, too. An entry
// names a value by its block, and contains the lower half of its version. A value is
//
//	+------------+-------------+----------------+----------+------------------+-------------+-----+-------+
//	| CRC32C (4) | current (1) | key length (1) | zero (2) | value length (4) | version (8) | key | value |
//	+------------+-------------+----------------+----------+------------------+-------------+-----+-------+
//
// with the checksum of everything after "current", which is 1 if an entry that is not busy names the value,
// else 0. A block that was given to another value has another version, so a client with an old entry
// detects this. A client that has remembered where the value was detects it by "current".
const (
	bucketLen     = 64
	entryLen      = 16
	bucketEntries = bucketLen / entryLen
	maxProbes     = 4 // buckets in which a key may be
	valueHead     = 20
	blockUnit     = 64

	// MaxKey is the maximum length of a key in octets.
	MaxKey = 255
	// MaxValue is the maximum length of a value in octets: one operation reads it with its key.
	MaxValue = maxStored - valueHead - MaxKey

	maxStored = 64 << 10 // octets of a value as it is stored
)

// The states of an entry.
const (
	entryFree  = 0
	entryValue = 1
	entryBusy  = 2 // the key is being changed: the backup knows its value
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Shape is the size of the memory of a tenant.
type Shape struct {
	Buckets uint32 // of the index, a power of two; it cannot change after the file was made
	Values  uint64 // octets of the blocks, a multiple of 64 KiB
}

// The limits of a Shape: blocks are counted by 32 bits.
const (
	maxBuckets = 1 << 28
	maxValues  = 1 << 38
)

func (s Shape) check() error {
	if s.Buckets == 0 || s.Buckets > maxBuckets || s.Buckets&(s.Buckets-1) != 0 {
		return fmt.Errorf("kv: %d buckets: a power of two up to %d is possible", s.Buckets, maxBuckets)
	}
	if s.Values == 0 || s.Values > maxValues || s.Values%maxStored != 0 {
		return fmt.Errorf("kv: %d octets for values: a multiple of %d up to %d is possible", s.Values, maxStored, uint64(maxValues))
	}
	return nil
}

// size returns how many octets the memory has.
func (s Shape) size() uint64 { return s.values() + s.Values }

// values returns the offset at which the blocks begin.
func (s Shape) values() uint64 { return uint64(s.Buckets) * bucketLen }

// blockAt returns the offset of a block.
func (s Shape) blockAt(block uint32) uint64 { return s.values() + uint64(block)*blockUnit }

// home returns the first bucket for a key with that hash.
func (s Shape) home(hash uint64) uint32 { return uint32(hash) & (s.Buckets - 1) }

// next returns the bucket after bucket.
func (s Shape) next(bucket uint32) uint32 { return (bucket + 1) & (s.Buckets - 1) }

// probes returns in how many buckets a key may be.
func (s Shape) probes() int { return int(min(s.Buckets, maxProbes)) }

// reaches reports whether a key with that hash may be in a bucket.
func (s Shape) reaches(hash uint64, bucket uint32) bool {
	return int((bucket-s.home(hash))&(s.Buckets-1)) < s.probes()
}

const shapeLen = 12

func (s Shape) append(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(b, s.Buckets), s.Values)
}

func (s *Shape) parse(b []byte) error {
	if len(b) != shapeLen {
		return fmt.Errorf("kv: the server tells the shape of its memory in %d octets, not in %d", len(b), shapeLen)
	}
	s.Buckets, s.Values = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint64(b[4:])
	return s.check()
}

// hashOf returns the hash of a key, the same in each process: FNV-1a, mixed so that all bits depend on the whole key.
func hashOf(key []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range key {
		h = (h ^ uint64(c)) * 1099511628211
	}
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}

func tagOf(hash uint64) uint16 { return uint16(hash >> 48) }

// An entry is an entry of a bucket.
type entry struct {
	state   uint8
	tag     uint16
	length  uint32 // of the stored value
	block   uint32
	version uint32
}

// put writes e to b, except for the overflow.
func (e entry) put(b []byte) {
	b[0] = e.state
	binary.LittleEndian.PutUint16(b[2:], e.tag)
	binary.LittleEndian.PutUint32(b[4:], e.length)
	binary.LittleEndian.PutUint32(b[8:], e.block)
	binary.LittleEndian.PutUint32(b[12:], e.version)
}

func entryOf(b []byte) entry {
	return entry{
		state: b[0], tag: binary.LittleEndian.Uint16(b[2:]), length: binary.LittleEndian.Uint32(b[4:]),
		block: binary.LittleEndian.Uint32(b[8:]), version: binary.LittleEndian.Uint32(b[12:]),
	}
}

func overflows(bucket []byte) bool { return bucket[1] != 0 }

func setOverflow(bucket []byte) { bucket[1] = 1 }

// storedLen returns the length of a stored value.
func storedLen(key, value int) int { return valueHead + key + value }

// putValue writes a stored value to b, which has exactly its length.
func putValue(b []byte, version uint64, key, value []byte) {
	clear(b[:valueHead])
	b[5] = byte(len(key))
	binary.LittleEndian.PutUint32(b[8:], uint32(len(value)))
	binary.LittleEndian.PutUint64(b[12:], version)
	copy(b[valueHead:], key)
	copy(b[valueHead+len(key):], value)
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[5:], castagnoli))
}

// setCurrent records in b whether the value stored there is the current value of its key.
func setCurrent(b []byte, is bool) {
	b[4] = 0
	if is {
		b[4] = 1
	}
}

func isCurrent(b []byte) bool { return len(b) >= valueHead && b[4] == 1 }

// valueOf returns the value in b if b is what the entry names: whole, and of its version. other reports that it
// is the value of another key with the same tag.
func valueOf(b []byte, e entry, key []byte) (value []byte, other, ok bool) {
	if len(b) < valueHead || uint32(binary.LittleEndian.Uint64(b[12:])) != e.version {
		return nil, false, false
	}
	n := int(b[5])
	if uint64(len(b)) != uint64(valueHead+n)+uint64(binary.LittleEndian.Uint32(b[8:])) {
		return nil, false, false
	}
	if binary.LittleEndian.Uint32(b) != crc32.Checksum(b[5:], castagnoli) {
		return nil, false, false
	}
	if !bytes.Equal(b[valueHead:valueHead+n], key) {
		return nil, true, true
	}
	return b[valueHead+n:], false, true
}

// Errors for invalid keys and values.
var (
	ErrKey   = errors.New("kv: a key has 1 to 255 octets")
	ErrValue = fmt.Errorf("kv: a value has at most %d octets", MaxValue)
)

func checkKey(key []byte) error {
	if len(key) == 0 || len(key) > MaxKey {
		return fmt.Errorf("%w, not %d", ErrKey, len(key))
	}
	return nil
}

func checkValue(value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("%w, not %d", ErrValue, len(value))
	}
	return nil
}
