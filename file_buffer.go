package iwarp

import (
	"fmt"
	"os"

	"github.com/goiwarp/iwarp/internal/filebuf"
)

// A FileBuffer is the octets [0, Size) of an open file as a [Buffer]: RDMA Reads become
// pread and RDMA Writes pwrite, at any number of places at a time. It makes nothing durable
// and keeps nothing in memory: what is written is in the system's cache when it is placed,
// as after a write of any program. For durable octets see package commit.
//
// The file stays the caller's. It must be open until the region is closed, and its file
// offset does not matter. Where somebody has made it shorter meanwhile, what is missing
// cannot be read: an RDMA Read of it ends that stream with an error, and not with zeros. An
// RDMA Write there makes the file longer again.
type FileBuffer struct{ octets *filebuf.Buffer }

var _ Buffer = (*FileBuffer)(nil)

// NewFileBuffer takes the first size octets of f, or all that there are now if size is 0.
// A device tells no size, and needs one. The file must have as many octets, be no
// directory or pipe, and not be opened for appending, where nobody could tell the place of
// a write; for RDMA Writes, or as a sink, it must be open for writing.
func NewFileBuffer(f *os.File, size int64) (*FileBuffer, error) {
	octets, err := filebuf.New(f, size, ErrBounds)
	if err != nil {
		return nil, fmt.Errorf("iwarp: NewFileBuffer: %w", err)
	}
	return &FileBuffer{octets}, nil
}

// Size is the size that the file had, or was given, when the FileBuffer was made.
func (b *FileBuffer) Size() int64 { return b.octets.Size() }

// ReadAt reads octets of the file. Where it has become shorter the error is
// io.ErrUnexpectedEOF; behind Size it is io.EOF.
func (b *FileBuffer) ReadAt(p []byte, off int64) (n int, err error) { return b.octets.ReadAt(p, off) }

// WriteAt writes octets of the file. Behind Size nothing is written, and the error matches
// ErrBounds.
func (b *FileBuffer) WriteAt(p []byte, off int64) (n int, err error) { return b.octets.WriteAt(p, off) }
