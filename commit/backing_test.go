package commit

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

// A backing is what the files have in common.
type backing interface {
	Flusher
	stag.Buffer
	Close() error
	Syncs() uint64
}

func backings(t *testing.T) map[string]func(path string, size int64) (backing, error) {
	m := map[string]func(path string, size int64) (backing, error){
		"file": func(path string, size int64) (backing, error) { return OpenFile(path, &FileOptions{Size: size}) },
	}
	platformBackings(t, m)
	return m
}

func TestBackings(t *testing.T) {
	for what, open := range backings(t) {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data")
			b, err := open(path, 64<<10)
			require.NoError(t, err)
			require.EqualValues(t, 64<<10, b.Size())
			for _, off := range []int64{0, 1, 4095, 4096, 8000, 64<<10 - 5} {
				_, err = b.WriteAt([]byte("hello"), off)
				require.NoError(t, err)
				require.NoError(t, b.Flush(context.Background(), off, 5))
				got := make([]byte, 5)
				_, err = b.ReadAt(got, off)
				require.NoError(t, err)
				require.Equal(t, "hello", string(got))
			}
			require.EqualValues(t, 6, b.Syncs())
			for _, off := range []int64{0, 50000} {
				_, err = b.WriteAt([]byte("h"), off)
				require.NoError(t, err)
			}
			require.NoError(t, b.Flush(context.Background(), 0, 64<<10), "several runs of octets")
			_, err = b.WriteAt([]byte("12345678"), 16)
			require.NoError(t, err)
			require.NoError(t, b.Close())
			require.Error(t, b.Flush(context.Background(), 0, 1))
			require.NoError(t, b.Close(), "closing again is no error")

			b, err = open(path, 0)
			require.NoError(t, err, "a file that is there keeps its size")
			require.EqualValues(t, 64<<10, b.Size())
			require.NoError(t, b.Close())
			disk, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, "hhellohello", string(disk[:1])+string(disk[1:6])+string(disk[4096:4101]), "what was written is in the file")
			require.Equal(t, "12345678", string(disk[16:24]))

			b, err = open(path, 128<<10)
			require.NoError(t, err, "or grows")
			require.EqualValues(t, 128<<10, b.Size())
			require.NoError(t, b.Close())
			b, err = open(path, 4096)
			require.NoError(t, err, "but does not shrink")
			require.EqualValues(t, 128<<10, b.Size())
			require.NoError(t, b.Close())

			_, err = open(filepath.Join(t.TempDir(), "no"), 0)
			require.Error(t, err, "a file that is not there has no size")
			require.NoError(t, os.WriteFile(path, nil, 0o600))
			_, err = open(path, 0)
			require.Error(t, err, "an empty one cannot be registered")
		})
	}
}

// TestBackingsAreReaders: a program that copies one to its end gets the last octets, too, however long its buffer is.
func TestBackingsAreReaders(t *testing.T) {
	for what, open := range backings(t) {
		t.Run(what, func(t *testing.T) {
			b, err := open(filepath.Join(t.TempDir(), "data"), 4<<10)
			require.NoError(t, err)
			content := bytes.Repeat([]byte("0123456789abcdef"), 256)
			_, err = b.WriteAt(content, 0)
			require.NoError(t, err)
			got, err := io.ReadAll(io.NewSectionReader(b, 1, 1<<40))
			require.NoError(t, err)
			require.Equal(t, content[1:], got)
			for _, part := range []struct {
				off     int64
				n, want int
				err     error
			}{{4<<10 - 3, 8, 3, io.EOF}, {4 << 10, 1, 0, io.EOF}, {4<<10 + 1, 1, 0, io.EOF}, {4<<10 + 1, 0, 0, nil}, {4<<10 - 8, 8, 8, nil}} {
				p := make([]byte, part.n)
				n, err := b.ReadAt(p, part.off)
				require.Equal(t, part.err, err, "%d octets at %d", part.n, part.off)
				require.Equal(t, part.want, n)
				require.Equal(t, content[min(part.off, 4<<10):][:n], p[:n])
			}
			require.NoError(t, b.Close())
		})
	}
}
