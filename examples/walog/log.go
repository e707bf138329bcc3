package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// The file of a target:
//
//	0       8       16       4096                                        tail
//	+-------+-------+--------+-------------------------------------------+------
//	| mark  | term  |        | record | record | ...                     |
//	+-------+-------+--------+-------------------------------------------+------
//
// where term is the last term that a writer has taken. The term, the mark and the fields of a record are little-endian. The
// target stores the mark and the term, which are follow-ons of Commits, in the byte order of its host, so it refuses
// to start on a host that is not little-endian. A record is:
//
//	+------------+-----------+-------------+------------------------------+
//	| length (4) | CRC32C (4)| number (8)  | octets, zero up to a multiple of 8
//	+------------+-----------+-------------+------------------------------+
const (
	markAt      = 0
	termAt      = 8
	start       = 4096
	recordHead  = 16
	defaultFile = 64 << 20
)

// A mark says where the log ends, which is the end of a record, and in which term that was written:
// the mark with the later term is right, and of two with the same term, the one with the later tail.
type mark struct {
	term uint16
	tail uint64 // less than 1 << 48
}

func (m mark) word() uint64 { return uint64(m.term)<<48 | m.tail }

func markOf(word uint64) mark { return mark{uint16(word >> 48), word & (1<<48 - 1)} }

func fileSize(records, size int) int64 { return start + int64(records)*int64(recordLen(size)) }

// recordLen returns the length of a record with n octets.
func recordLen(n int) int { return recordHead + (n+7)&^7 }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errFull = errors.New("the log is full")

// putRecord puts a record to the front of b and returns its length.
func putRecord(b []byte, number uint64, data []byte) (int, error) {
	n := recordLen(len(data))
	if n > len(b) {
		return 0, errFull
	}
	clear(b[:n])
	binary.LittleEndian.PutUint32(b, uint32(len(data)))
	binary.LittleEndian.PutUint64(b[8:], number)
	copy(b[recordHead:], data)
	binary.LittleEndian.PutUint32(b[4:], sum(b[:n]))
	return n, nil
}

// sum returns the checksum of a record: of everything but the checksum itself.
func sum(record []byte) uint32 {
	return crc32.Update(crc32.Checksum(record[:4], castagnoli), castagnoli, record[8:])
}

// wholeRecords returns the length of the complete records at the front of b.
func wholeRecords(b []byte) (n int) {
	for len(b)-n >= recordHead {
		next := recordLen(int(binary.LittleEndian.Uint32(b[n:])))
		if next > len(b)-n {
			break
		}
		n += next
	}
	return n
}

// checkLog checks all records of a log and returns how many there are.
func checkLog(b []byte) (records uint64, err error) {
	for ; len(b) > 0; records++ {
		n := uint64(recordHead)
		if uint64(len(b)) >= n {
			n += (uint64(binary.LittleEndian.Uint32(b)) + 7) &^ 7
		}
		if uint64(len(b)) < n {
			return records, fmt.Errorf("record %d is cut", records)
		}
		if binary.LittleEndian.Uint64(b[8:]) != records || binary.LittleEndian.Uint32(b[4:]) != sum(b[:n]) {
			return records, fmt.Errorf("record %d is damaged", records)
		}
		b = b[n:]
	}
	return records, nil
}
