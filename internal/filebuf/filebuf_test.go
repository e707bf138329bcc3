package filebuf

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var errOutside = errors.New("outside")

func octets(t *testing.T, flags int, content string) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "octets")
	require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	f, err := os.OpenFile(name, flags, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestBufferEndsAtItsSize: nothing after Size is read or written, although the file is longer, and a file that was cut
// shorter meanwhile gives io.ErrUnexpectedEOF.
func TestBufferEndsAtItsSize(t *testing.T) {
	f := octets(t, os.O_RDWR, "0123456789")
	b, err := New(f, 8, errOutside)
	require.NoError(t, err)
	require.EqualValues(t, 8, b.Size())

	p := make([]byte, 4)
	n, err := b.ReadAt(p, 6)
	require.Equal(t, io.EOF, err)
	require.Equal(t, "67", string(p[:n]))
	n, err = b.ReadAt(p, 9)
	require.Equal(t, io.EOF, err)
	require.Zero(t, n)

	for _, off := range []int64{-1, 5, 9} {
		_, err = b.WriteAt([]byte("abcd"), off)
		require.ErrorIs(t, err, errOutside, "at %d", off)
	}
	_, err = b.WriteAt([]byte("abcdefgh"), 0)
	require.NoError(t, err, "all that there is")
	n, err = b.ReadAt(p, 2)
	require.NoError(t, err)
	require.Equal(t, "cdef", string(p[:n]))

	require.NoError(t, f.Truncate(6))
	n, err = b.ReadAt(p, 4)
	require.Equal(t, io.ErrUnexpectedEOF, err)
	require.Equal(t, "ef", string(p[:n]))

	require.NoError(t, f.Close())
	for _, off := range []int64{0, 6} {
		_, err = b.ReadAt(p, off)
		require.ErrorIs(t, err, os.ErrClosed, "at %d: this is no end of the file", off)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	require.NoError(t, err)
	defer func() { _ = dir.Close() }()
	for _, c := range []struct {
		file *os.File
		size int64
		want string
	}{
		{nil, 1, "nil"},
		{dir, 1, "at a place"},
		{octets(t, os.O_RDWR, "1"), -1, "a size of -1"},
		{octets(t, os.O_RDWR, ""), 0, "is empty"},
		{octets(t, os.O_RDWR, "1"), 2, "has 1 octets, less than 2"},
		{octets(t, os.O_RDWR|os.O_APPEND, "1"), 1, "O_APPEND"},
	} {
		_, err := New(c.file, c.size, errOutside)
		require.ErrorContains(t, err, c.want)
	}
	b, err := New(octets(t, os.O_RDWR, "123"), 0, errOutside)
	require.NoError(t, err)
	require.EqualValues(t, 3, b.Size(), "all that there is")
}
