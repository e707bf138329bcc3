package iwarp

import (
	"fmt"
	"os"

	"github.com/goiwarp/iwarp/internal/filebuf"
)

// A FileBuffer is a [Buffer] of the octets [0, Size) of an open file. RDMA Reads become pread
// calls and RDMA Writes become pwrite calls, any number of them at a time. A FileBuffer makes
// nothing durable and caches nothing: an octet that has been placed is in the page cache of
// the operating system, as after any write to a file. For durable octets see package commit.
//
// The file still belongs to the caller. It must be open until the region is closed; its file
// offset is neither used nor changed. If the file is truncated, the missing octets cannot be
// read: an RDMA Read of them ends its stream with an error instead of returning zeros. An RDMA
// Write to them extends the file again.
type FileBuffer struct{ octets *filebuf.Buffer }

var _ Buffer = (*FileBuffer)(nil)

// NewFileBuffer returns a FileBuffer of the first size octets of f, or of the whole file if
// size is 0. A device reports no size, so size must be given for it. The file must have at
// least size octets. It must not be a directory or a pipe. It must not be open for appending,
// because writes would then ignore their offset. To serve RDMA Writes, or as a sink, it must
// be open for writing.
func NewFileBuffer(f *os.File, size int64) (*FileBuffer, error) {
	octets, err := filebuf.New(f, size, ErrBounds)
	if err != nil {
		return nil, fmt.Errorf("iwarp: NewFileBuffer: %w", err)
	}
	return &FileBuffer{octets}, nil
}

// Size returns the size that the file had, or that was given, when the FileBuffer was made.
func (b *FileBuffer) Size() int64 { return b.octets.Size() }

// ReadAt reads octets of the file. If the file has been truncated the error is
// io.ErrUnexpectedEOF; beyond Size it is io.EOF.
func (b *FileBuffer) ReadAt(p []byte, off int64) (n int, err error) { return b.octets.ReadAt(p, off) }

// WriteAt writes octets of the file. Beyond Size it writes nothing, and the error matches
// ErrBounds.
func (b *FileBuffer) WriteAt(p []byte, off int64) (n int, err error) { return b.octets.WriteAt(p, off) }
