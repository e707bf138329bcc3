// Package filebuf reads and writes the first octets of an open file.
package filebuf

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// A Buffer is the octets [0, Size) of an open file. It is safe for concurrent use.
type Buffer struct {
	file    *os.File
	size    int64
	outside error // matched by the error of a write beyond Size
}

// New returns a Buffer of the first size octets of f, or of its current length if size is 0. It
// refuses a file that does not support reads and writes at an offset.
func New(f *os.File, size int64, outside error) (*Buffer, error) {
	if f == nil {
		return nil, errors.New("the file is nil")
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
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
		return nil, err
	}
	return &Buffer{file: f, size: size, outside: outside}, nil
}

// Size returns the size that the file had, or was given, when the Buffer was made.
func (b *Buffer) Size() int64 { return b.size }

// ReadAt reads octets of the file. If the file has become shorter, the error is
// io.ErrUnexpectedEOF; beyond Size it is io.EOF.
func (b *Buffer) ReadAt(p []byte, off int64) (n int, err error) {
	want := p
	if left := b.size - off; int64(len(p)) > left {
		want = p[:max(left, 0)]
	}
	n, err = b.file.ReadAt(want, off)
	switch {
	case errors.Is(err, io.EOF):
		return n, io.ErrUnexpectedEOF
	case err == nil && len(want) < len(p):
		return n, io.EOF
	}
	return n, err
}

// WriteAt writes octets of the file. It writes nothing beyond Size.
func (b *Buffer) WriteAt(p []byte, off int64) (n int, err error) {
	if off < 0 || int64(len(p)) > b.size-off {
		return 0, fmt.Errorf("%w: writing %d octets at %d of %d", b.outside, len(p), off, b.size)
	}
	return b.file.WriteAt(p, off)
}
