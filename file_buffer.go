package iwarp

import (
	"errors"
	"fmt"
	"io"
	"os"
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
type FileBuffer struct {
	file *os.File
	size int64
}

var _ Buffer = (*FileBuffer)(nil)

// NewFileBuffer takes the first size octets of f, or all that there are now if size is 0.
// A device tells no size, and needs one. The file must have as many octets, be no
// directory or pipe, and not be opened for appending, where nobody could tell the place of
// a write; for RDMA Writes, or as a sink, it must be open for writing.
func NewFileBuffer(f *os.File, size int64) (*FileBuffer, error) {
	if f == nil {
		return nil, errors.New("iwarp: NewFileBuffer: the file is nil")
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("iwarp: NewFileBuffer: %w", err)
	}
	there := info.Size()
	regular := info.Mode().IsRegular()
	if size == 0 && regular {
		size = there
	}
	switch mode := info.Mode(); {
	case mode.IsDir(), mode&(os.ModeNamedPipe|os.ModeSocket) != 0:
		err = fmt.Errorf("%s is no file that can be read and written at a place", f.Name())
	case size < 0:
		err = fmt.Errorf("a size of %d octets", size)
	case size == 0 && regular:
		err = fmt.Errorf("%s is empty", f.Name())
	case size == 0:
		err = fmt.Errorf("%s tells no size; give one", f.Name())
	case regular && size > there:
		err = fmt.Errorf("%s has %d octets, less than %d: make it longer first (os.File.Truncate)", f.Name(), there, size)
	default:
		_, err = f.WriteAt(nil, 0) // writes nothing, and is refused where the file is opened for appending
	}
	if err != nil {
		return nil, fmt.Errorf("iwarp: NewFileBuffer: %w", err)
	}
	return &FileBuffer{file: f, size: size}, nil
}

// Size is the size that the file had, or was given, when the FileBuffer was made.
func (b *FileBuffer) Size() int64 { return b.size }

// ReadAt reads octets of the file. Where it has become shorter the error is
// io.ErrUnexpectedEOF; behind Size it is io.EOF.
func (b *FileBuffer) ReadAt(p []byte, off int64) (n int, err error) {
	want := p
	if left := b.size - off; off >= 0 && int64(len(p)) > left {
		want = p[:max(left, 0)]
	}
	n, err = b.file.ReadAt(want, off)
	switch {
	case n < len(want) && errors.Is(err, io.EOF):
		return n, io.ErrUnexpectedEOF
	case err == nil && len(want) < len(p):
		return n, io.EOF
	}
	return n, err
}

// WriteAt writes octets of the file. Behind Size nothing is written, and the error matches
// ErrBounds.
func (b *FileBuffer) WriteAt(p []byte, off int64) (n int, err error) {
	if off < 0 || off > b.size || int64(len(p)) > b.size-off {
		return 0, fmt.Errorf("%w: writing %d octets at %d of %d", ErrBounds, len(p), off, b.size)
	}
	return b.file.WriteAt(p, off)
}
