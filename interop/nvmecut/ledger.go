package nvmecut

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// BlockSize is the length of an LBA.
const BlockSize = 512

// A ledger records the required contents of a range of LBAs, the first of which is base.
type ledger struct {
	base    int64
	durable []uint64   // version by LBA; 0: zeros, which were there before any Write
	sent    [][]uint64 // versions that were sent since, by LBA
	next    uint64     // version

	acknowledged, lost int
	news               []string // what was lost, in words
}

func newLedger(base int64, blocks int) *ledger {
	return &ledger{base: base, durable: make([]uint64, blocks), sent: make([][]uint64, blocks), next: 1}
}

// begin returns the version of a block that is about to be sent.
func (l *ledger) begin(block int) uint64 {
	v := l.next
	l.next++
	l.sent[block] = append(l.sent[block], v)
	return v
}

// acknowledge records the answer that makes a version durable. Earlier versions of the same block must not reappear.
func (l *ledger) acknowledge(block int, version uint64) {
	l.acknowledged++
	l.durable[block] = version
	kept := l.sent[block][:0]
	for _, v := range l.sent[block] {
		if v > version {
			kept = append(kept, v)
		}
	}
	l.sent[block] = kept
}

// check compares the contents after a cut with the required ones. The existing contents are durable from now on: they have been on the
// medium without power. A loss is counted once.
func (l *ledger) check(area []byte) {
	for i := range l.durable {
		b := area[i*BlockSize:][:BlockSize]
		version, err := l.parse(i, b)
		switch {
		case err != nil:
			l.lose("LBA %d: %v; durable was version %d", l.base+int64(i), err, l.durable[i])
		case !l.possible(i, version):
			l.lose("LBA %d has version %d; durable was %d, sent after it were %d", l.base+int64(i), version, l.durable[i], l.sent[i])
		}
		l.durable[i], l.sent[i] = version, nil
	}
}

func (l *ledger) possible(block int, version uint64) bool {
	if version == l.durable[block] {
		return true
	}
	return slices.Contains(l.sent[block], version)
}

func (l *ledger) lose(format string, args ...any) {
	l.lost++
	l.news = append(l.news, fmt.Sprintf(format, args...))
}

// put writes a version of a block: the LBA and the version, repeatedly, each time with the position in the block.
func (l *ledger) put(b []byte, block int, version uint64) {
	for at := 0; at < BlockSize; at += 16 {
		binary.LittleEndian.PutUint64(b[at:], uint64(l.base+int64(block))<<8|uint64(at/16))
		binary.LittleEndian.PutUint64(b[at+8:], version)
	}
}

// parse returns which version of a block b contains. Zeros are version 0.
func (l *ledger) parse(block int, b []byte) (version uint64, err error) {
	var want [BlockSize]byte
	if bytes.Equal(b, want[:]) {
		return 0, nil
	}
	version = binary.LittleEndian.Uint64(b[8:])
	l.put(want[:], block, version)
	if !bytes.Equal(b, want[:]) {
		return 0, fmt.Errorf("a block that is not whole, or not of this LBA: % x", b[:16])
	}
	return version, nil
}
