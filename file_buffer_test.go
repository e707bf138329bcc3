package iwarp_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// tempFile opens a file with these octets.
func tempFile(t *testing.T, octets []byte, flags int) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, octets, 0o600))
	f, err := os.OpenFile(name, flags, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestFileAsABuffer(t *testing.T) {
	octets := make([]byte, 1<<20+7)
	fillRandom(octets)
	f := tempFile(t, octets, os.O_RDWR)
	b, err := iwarp.NewFileBuffer(f, 0)
	require.NoError(t, err)
	require.EqualValues(t, len(octets), b.Size(), "all of it")
	require.NoError(t, iotest.TestReader(io.NewSectionReader(b, 0, b.Size()), octets))

	client, server := connect(t, pairConfig{})
	mr, err := server.pd.RegisterBuffer(b, stag.LocalWrite|stag.RemoteRead|stag.RemoteWrite, nil)
	require.NoError(t, err)
	ctx := testContext(t)
	mem, local := client.register(len(octets), stag.LocalWrite, nil)
	at := mr.Advertise(0, len(octets))
	require.NoError(t, client.qp.RDMARead(ctx, local.Slice(0, len(octets)), at))
	require.Equal(t, octets, mem, "RDMA Reads")

	fillRandom(mem)
	const writers, part = 16, 1 << 16
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			if err := client.qp.RDMAWrite(ctx, at.Slice(i*part, part), local.Slice(i*part, part)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, client.qp.RDMARead(ctx, iwarp.SGE{}, iwarp.RemoteBuffer{}), "there and back")
	got, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	require.Equal(t, mem[:writers*part], got[:writers*part], "RDMA Writes, many at a time")
	require.Equal(t, octets[writers*part:], got[writers*part:], "and nothing else")
	require.NoError(t, mr.Close())
}

// TestPartOfAFile: a size of the caller's, behind which nothing is read or written.
func TestPartOfAFile(t *testing.T) {
	f := tempFile(t, []byte("0123456789"), os.O_RDWR)
	b, err := iwarp.NewFileBuffer(f, 4)
	require.NoError(t, err)
	require.EqualValues(t, 4, b.Size())
	p := make([]byte, 8)
	n, err := b.ReadAt(p, 2)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, "23\x00\x00\x00\x00\x00\x00", string(p))
	require.Equal(t, 2, n)
	_, err = b.ReadAt(p, 4)
	require.ErrorIs(t, err, io.EOF)
	_, err = b.ReadAt(p, 9)
	require.ErrorIs(t, err, io.EOF)
	_, err = b.ReadAt(p, -1)
	require.Error(t, err)
	for _, off := range []int64{-1, 3, 4, 5, 1 << 62} {
		_, err = b.WriteAt([]byte("xx"), off)
		require.ErrorIs(t, err, iwarp.ErrBounds, off)
	}
	_, err = b.WriteAt([]byte("xx"), 2)
	require.NoError(t, err)
	got, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	require.Equal(t, "01xx456789", string(got))
}

// TestFileThatWasCut: what is missing is an error and not zeros; a Write brings it back.
func TestFileThatWasCut(t *testing.T) {
	f := tempFile(t, bytes.Repeat([]byte{'x'}, 100), os.O_RDWR)
	b, err := iwarp.NewFileBuffer(f, 0)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(50))
	_, err = b.ReadAt(make([]byte, 20), 40)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)

	client, server := connect(t, pairConfig{})
	mr, err := server.pd.RegisterBuffer(b, stag.LocalWrite|stag.RemoteRead|stag.RemoteWrite, nil)
	require.NoError(t, err)
	ctx := testContext(t)
	mem, local := client.register(20, stag.LocalWrite, nil)
	copy(mem, "0123456789")
	require.NoError(t, client.qp.RDMAWrite(ctx, mr.Advertise(90, 10), local.Slice(0, 10)))
	require.NoError(t, client.qp.RDMARead(ctx, local.Slice(10, 10), mr.Advertise(90, 10)))
	require.Equal(t, "01234567890123456789", string(mem), "the file is long again")

	require.NoError(t, f.Truncate(50))
	require.Error(t, client.qp.RDMARead(ctx, local.Slice(0, 20), mr.Advertise(40, 20)))
	require.Equal(t, "01234567890123456789", string(mem), "not zeros")
	<-server.qp.Done()
	require.ErrorIs(t, server.qp.Err(), io.ErrUnexpectedEOF)
}

func TestFileThatIsNoBuffer(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	closed := tempFile(t, []byte("x"), os.O_RDWR)
	require.NoError(t, closed.Close())
	for name, c := range map[string]struct {
		f    *os.File
		size int64
		says string
	}{
		"nil":       {nil, 0, "the file is nil"},
		"empty":     {tempFile(t, nil, os.O_RDWR), 0, "is empty"},
		"too short": {tempFile(t, []byte("four"), os.O_RDWR), 5, "has 4 octets, less than 5"},
		"negative":  {tempFile(t, []byte("four"), os.O_RDWR), -1, "a size of -1 octets"},
		"directory": {dir, 10, "is no file"},
		"pipe":      {r, 10, "is no file"},
		"to append": {tempFile(t, []byte("four"), os.O_RDWR|os.O_APPEND), 0, "O_APPEND"},
		"closed":    {closed, 0, os.ErrClosed.Error()},
		"device":    {null, 0, "tells no size"},
	} {
		_, err := iwarp.NewFileBuffer(c.f, c.size)
		require.ErrorContains(t, err, c.says, name)
		require.ErrorContains(t, err, "iwarp: NewFileBuffer: ", name)
	}
	_, err = iwarp.NewFileBuffer(tempFile(t, []byte("four"), os.O_RDONLY), 0)
	require.NoError(t, err, "to be read only")
}
