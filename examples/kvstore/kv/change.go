package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A change is a Put or a Delete, as it is in the log:
//
//	+------------+----------------+-----------+----------------+----------+------------------+
//	| CRC32C (4) | generation (4) | flags (1) | key length (1) | zero (2) | value length (4) |
//	+------------+----------------+-----------+----------------+----------+------------------+
//	+-------------+------------+----------------+-----------+-----+-------+--------------------+
//	| version (8) | tenant (8) | index of e. (4)| block (4) | key | value | zero, up to 8 n    |
//	+-------------+------------+----------------+-----------+-----+-------+--------------------+
//
// with the checksum of everything after it. The primary decides where a value is stored, so that the backup
// has room for it if the primary has.
type change struct {
	deletes bool
	tenant  uint64
	version uint64 // one more than that of the previous change
	entry   uint32 // in the index: 4 times the bucket, plus the number within it
	block   uint32
	key     []byte
	value   []byte
}

const (
	changeHead = 40
	maxChange  = changeHead + MaxKey + MaxValue + 7
)

// Each generation of the log except the first begins with a change of no tenant, which changes nothing. Its version is
// that of the latest change before: if that was a Delete, nothing else records it. Its value, a little-endian integer, is
// how many octets the generation had when it became the log. In logs from before this length was recorded, the value is empty.
const (
	noTenant  = 0
	latestKey = "latest"
)

var latestLen = uint64(changeLen(len(latestKey), 8))

// begun returns the minimum length of a generation of the log, which its first change contains. For other changes it returns 0.
func (c *change) begun() uint64 {
	if c.tenant != noTenant || len(c.value) != 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(c.value)
}

// changeLen returns the length of a change in the log.
func changeLen(key, value int) int { return (changeHead + key + value + 7) &^ 7 }

// append appends the change to b.
func (c *change) append(b []byte, generation uint32) []byte {
	at, n := len(b), changeLen(len(c.key), len(c.value))
	b = append(b, make([]byte, n)...)
	h := b[at:]
	binary.LittleEndian.PutUint32(h[4:], generation)
	if c.deletes {
		h[8] = 1
	}
	h[9] = byte(len(c.key))
	binary.LittleEndian.PutUint32(h[12:], uint32(len(c.value)))
	binary.LittleEndian.PutUint64(h[16:], c.version)
	binary.LittleEndian.PutUint64(h[24:], c.tenant)
	binary.LittleEndian.PutUint32(h[32:], c.entry)
	binary.LittleEndian.PutUint32(h[36:], c.block)
	copy(h[changeHead:], c.key)
	copy(h[changeHead+len(c.key):], c.value)
	binary.LittleEndian.PutUint32(h, crc32.Checksum(h[4:n], castagnoli))
	return b
}

// errNoChange is the error for octets that are not a change of the log: its end, or damage.
var errNoChange = errors.New("kv: no change is here")

// parse parses the change at the front of b, whose octets it keeps, and returns its length. If b is too
// short, need is how many octets it must have.
func (c *change) parse(b []byte, generation uint32) (n, need int, err error) {
	if len(b) < changeHead {
		return 0, changeHead, errNoChange
	}
	length := binary.LittleEndian.Uint32(b[12:])
	if b[9] == 0 || length > MaxValue || binary.LittleEndian.Uint32(b[4:]) != generation {
		return 0, 0, errNoChange
	}
	key, value := int(b[9]), int(length)
	if n = changeLen(key, value); len(b) < n {
		return 0, n, errNoChange
	}
	if binary.LittleEndian.Uint32(b) != crc32.Checksum(b[4:n], castagnoli) {
		return 0, 0, errNoChange
	}
	*c = change{
		deletes: b[8] != 0, version: binary.LittleEndian.Uint64(b[16:]), tenant: binary.LittleEndian.Uint64(b[24:]),
		entry: binary.LittleEndian.Uint32(b[32:]), block: binary.LittleEndian.Uint32(b[36:]),
		key: b[changeHead : changeHead+key], value: b[changeHead+key : changeHead+key+value],
	}
	return n, 0, nil
}

func (c *change) String() string {
	what := "Put"
	if c.deletes {
		what = "Delete"
	}
	return fmt.Sprintf("%s of %q, version %d", what, c.key, c.version)
}
