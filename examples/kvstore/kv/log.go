package kv

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/goiwarp/iwarp/commit"
)

// The durable file of a replica:
//
//	0          8           24         32          4096                 4096 + half           4096 + 2 half
//	+----------+-----------+----------+-----------+--------------------+---------------------+
//	| mark (8) | name (16) | half (8) | not used  | changes            | changes             |
//	+----------+-----------+----------+-----------+--------------------+---------------------+
//
// The log is in one half, chosen by the last bit of its generation. When that half is full, the changes that
// still count are written to the other one, as the beginning of the next generation. The name of the log is a
// random number, which the backup gets from the primary. When a backup's log becomes that of a primary, it gets
// a new name: from there on the old primary has another log. The length of a half, little-endian, is written
// before there is a log. In files from before it was recorded it is 0, and follows from the size of the file.
const (
	logStart  = 4096
	nameLen   = 16
	nameAt    = 8
	halfAt    = nameAt + nameLen
	headLen   = halfAt + 8
	scanChunk = 1 << 20
	maxHalf   = (min(math.MaxUint32, math.MaxInt) - logStart) / 2 &^ 7 // the primary names the backup's file by one RemoteBuffer
)

// A mark says which generation the log has, and how many octets of it are present. The backup's mark is
// exact. The primary's file contains openTail, and the primary finds the end by the checksums.
type mark struct {
	generation uint32 // less than 1 << 24; 0: there is no log
	tail       uint64 // less than 1 << 40
}

const (
	maxGeneration = 1<<24 - 1
	openTail      = 1<<40 - 1
)

func (m mark) word() uint64 { return uint64(m.generation)<<40 | m.tail }

func markOf(word uint64) mark { return mark{uint32(word >> 40), word & openTail} }

// A logFile is the durable file of a replica.
type logFile struct {
	file *commit.File
	half uint64
	name [nameLen]byte
	mark mark // where the log ends: everything before it is durable
}

// openLog opens the file, or makes it. It does not change a file whose log has another half: the log would not be found, and
// the octets in its place would be cleared.
func openLog(ctx context.Context, path string, half uint64) (*logFile, error) {
	if half < 4*maxChange || half%8 != 0 || half > maxHalf {
		return nil, fmt.Errorf("kv: half of a log has %d octets: %d to %d are possible, a multiple of 8", half, (4*maxChange+7)&^7, int64(maxHalf))
	}
	if err := checkHalf(path, half); err != nil {
		return nil, err
	}
	f, err := commit.OpenFile(path, &commit.FileOptions{Size: int64(logStart + 2*half)})
	if err != nil {
		return nil, err
	}
	l := &logFile{file: f, half: half}
	if err := l.readMark(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if l.mark.generation == 0 {
		err = l.writeHalf(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// checkHalf fails if a file contains a log with another half, or only the mark of a log. It also fails for a pipe or a character device,
// without opening it: the other end of a pipe may never be opened.
func checkHalf(path string, half uint64) error {
	if info, err := os.Stat(path); err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) != 0 {
		return fmt.Errorf("kv: %s is neither a file nor a block device", path)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kv: %w", err)
	}
	defer func() { _ = f.Close() }()
	var b [headLen]byte
	if _, err := f.ReadAt(b[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("kv: %w", err)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("kv: %w", err)
	}
	has := int64(binary.LittleEndian.Uint64(b[halfAt:]))
	if has == 0 {
		has = (size - logStart) / 2
	}
	switch {
	case binary.NativeEndian.Uint64(b[:]) == 0: // there is no mark
		return nil
	case size < logStart:
		return fmt.Errorf("kv: %s has a mark and was cut: %d octets are left of it, and the log was behind octet %d", path, size, logStart)
	case has != int64(half):
		return fmt.Errorf("kv: %s has a log with %d octets for half of it, not %d: start both replicas with -log-half %[2]d, or with new files", path, has, half)
	}
	return nil
}

// writeHalf makes the length of a half durable, before a primary makes a mark.
func (l *logFile) writeHalf(ctx context.Context) error {
	if _, err := l.file.WriteAt(binary.LittleEndian.AppendUint64(nil, l.half), halfAt); err != nil {
		return err
	}
	return l.file.Flush(ctx, halfAt, headLen-halfAt)
}

// readMark reads the mark, which is in the byte order of the host, as a peer's FollowOn leaves it, and
// the name.
func (l *logFile) readMark() error {
	var b [nameAt + nameLen]byte
	if _, err := l.file.ReadAt(b[:], 0); err != nil {
		return err
	}
	l.mark = markOf(binary.NativeEndian.Uint64(b[:]))
	copy(l.name[:], b[nameAt:])
	if l.mark.generation == 0 && l.mark.tail > 0 { // not a new file: its contents must not be cleared
		return fmt.Errorf("kv: the mark of the log is damaged: it has %d octets of generation 0", l.mark.tail)
	}
	if l.mark.tail > l.half && l.mark.tail != openTail {
		return fmt.Errorf("kv: a log of %d octets, where half of the file has %d: it was made with another size", l.mark.tail, l.half)
	}
	return nil
}

// readName reads the name, which the primary may have written.
func (l *logFile) readName() error {
	_, err := l.file.ReadAt(l.name[:], nameAt)
	return err
}

// start makes an empty log, with a name. The file may contain the beginning of another log, which its
// primary has not completed.
func (l *logFile) start(ctx context.Context) error {
	first := mark{generation: 1}
	if err := l.clear(first, l.half); err != nil {
		return err
	}
	if err := l.rename(); err != nil {
		return err
	}
	return l.recovered(ctx, first, maxBatch)
}

// rename gives the log a unique name. The name becomes durable when a generation begins.
func (l *logFile) rename() error {
	if _, err := rand.Read(l.name[:]); err != nil {
		return err
	}
	_, err := l.file.WriteAt(l.name[:], nameAt)
	return err
}

// begin makes the generation of a mark durable, with everything that was written before it.
func (l *logFile) begin(ctx context.Context, m mark) error {
	if err := l.file.Flush(ctx, 0, int64(logStart+2*l.half)); err != nil {
		return err
	}
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], mark{m.generation, openTail}.word())
	if _, err := l.file.WriteAt(b[:], 0); err != nil {
		return err
	}
	if err := l.file.Flush(ctx, 0, 8); err != nil {
		return err
	}
	l.mark = m
	return nil
}

// recovered makes the log that was found durable, and clears octets that must not seem to continue it after later changes: n octets
// after its end, and, in the other half, a next generation that was not begun.
func (l *logFile) recovered(ctx context.Context, end mark, n uint64) error {
	if err := l.clear(end, min(l.half-end.tail, n)); err != nil {
		return err
	}
	if err := l.clear(mark{generation: end.generation + 1}, l.half); err != nil {
		return err
	}
	return l.begin(ctx, end)
}

// clear fills n octets with zeros, beginning at a mark.
func (l *logFile) clear(from mark, n uint64) error {
	zeros := make([]byte, min(n, maxBatch))
	for ; n > 0; n -= uint64(len(zeros)) {
		zeros = zeros[:min(n, maxBatch)]
		if _, err := l.file.WriteAt(zeros, l.at(from)); err != nil {
			return err
		}
		from.tail += uint64(len(zeros))
	}
	return nil
}

// at returns the offset of an octet of a generation in the file.
func (l *logFile) at(m mark) int64 {
	return int64(logStart + uint64(m.generation&1)*l.half + m.tail)
}

// append makes changes durable at the end of the log.
func (l *logFile) append(ctx context.Context, b []byte) error {
	off := l.at(l.mark)
	if _, err := l.file.WriteAt(b, off); err != nil {
		return err
	}
	if err := l.file.Flush(ctx, off, int64(len(b))); err != nil {
		return err
	}
	l.mark.tail += uint64(len(b))
	return nil
}

// room returns how many more octets the generation can hold.
func (l *logFile) room() uint64 { return l.half - l.mark.tail }

// scan calls f with all changes of the generation of from, from its tail to the octet end, and returns
// where they end. If exact is set, they must end at end.
func (l *logFile) scan(from mark, end uint64, exact bool, f func(*change) error) (mark, error) {
	var buf []byte
	var c change
	for from.tail < end {
		n, need, err := c.parse(buf, from.generation)
		if err != nil && need > 0 && uint64(need) <= end-from.tail {
			if buf, err = l.read(from, max(need, int(min(scanChunk, end-from.tail)))); err != nil {
				return from, err
			}
			n, _, err = c.parse(buf, from.generation)
		}
		if err != nil {
			if exact {
				return from, fmt.Errorf("kv: the log is damaged at octet %d of %d: %w", from.tail, end, err)
			}
			return from, nil
		}
		if err := f(&c); err != nil {
			return from, err
		}
		buf = buf[n:]
		from.tail += uint64(n)
	}
	return from, nil
}

// read reads n octets of the log.
func (l *logFile) read(from mark, n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := l.file.ReadAt(b, l.at(from))
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

func (l *logFile) close() error { return l.file.Close() }
