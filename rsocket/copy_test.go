package rsocket

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A call is a Reader and a Writer that is a function.
type call func(p []byte) (int, error)

func (c call) Read(p []byte) (int, error)  { return c(p) }
func (c call) Write(p []byte) (int, error) { return c(p) }

// TestRSK_8_ReadFromAnErrorThatWrapsEOF: it is not the end of the reader, whose octets are incomplete.
func TestRSK_8_ReadFromAnErrorThatWrapsEOF(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, _ := pair(t, "pipe", nil, nil)
		cut := fmt.Errorf("block 3 of 7: %w", io.EOF)
		n, err := a.ReadFrom(io.MultiReader(bytes.NewReader([]byte("hello")), call(func([]byte) (int, error) { return 0, cut })))
		require.Equal(t, cut, err)
		require.EqualValues(t, 5, n)
	})
}

// TestRSK_8_WritersThatCountWrongly cause an error, as with io.Copy, and the stream neither loses nor invents octets.
func TestRSK_8_WritersThatCountWrongly(t *testing.T) {
	for _, c := range []struct {
		name string
		says int
		want string
		rest string
	}{
		{"too many", 1000, "invalid write result", "hello"},
		{"less than none", -1, "invalid write result", "hello"},
		{"too few", 2, io.ErrShortWrite.Error(), "llo"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a, b := pair(t, "pipe", nil, nil)
				_, err := a.Write([]byte("hello"))
				require.NoError(t, err)
				_, err = b.WriteTo(call(func([]byte) (int, error) { return c.says, nil }))
				require.ErrorContains(t, err, c.want)
				require.NoError(t, b.SetReadDeadline(time.Now().Add(time.Second)))
				got := make([]byte, 10)
				n, err := b.Read(got)
				require.NoError(t, err)
				require.Equal(t, c.rest, string(got[:n]))
			})
		})
	}
}

// TestRSK_8_ReadersThatCountWrongly end ReadFrom with an error, and octets that they have not read are not sent.
func TestRSK_8_ReadersThatCountWrongly(t *testing.T) {
	for _, says := range []int{-1, 1 << 20} {
		bubble(t, func(t *testing.T) {
			a, b := pair(t, "pipe", nil, nil)
			n, err := a.ReadFrom(call(func([]byte) (int, error) { return says, io.EOF }))
			require.ErrorContains(t, err, "invalid read result")
			require.Zero(t, n)
			_, err = a.Write([]byte("x"))
			require.NoError(t, err)
			got := make([]byte, 10)
			k, err := b.Read(got)
			require.NoError(t, err)
			require.Equal(t, "x", string(got[:k]))
		})
	}
}

// TestRSK_8_ReadersAndWritersThatPanic: the panic goes on, to be recovered by an HTTP server for example, and the Conn stays usable.
func TestRSK_8_ReadersAndWritersThatPanic(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := pair(t, "pipe", nil, nil)
		oops := call(func([]byte) (int, error) { panic("oops") })
		require.PanicsWithValue(t, "oops", func() { _, _ = a.ReadFrom(oops) })
		_, err := a.Write([]byte("hello"))
		require.NoError(t, err)
		require.PanicsWithValue(t, "oops", func() { _, _ = b.WriteTo(oops) })
		got := make([]byte, 10)
		n, err := b.Read(got)
		require.NoError(t, err)
		require.Equal(t, "hello", string(got[:n]))
	})
}
