package rdma9p

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A discardCloser is a stream of answers.
type discardCloser struct{ io.Writer }

func (discardCloser) Close() error { return nil }

func TestDelayEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var got []byte
		h := DelayEnd(handlerFunc(func(in io.ReadCloser, _ io.WriteCloser) error {
			b := make([]byte, 2)
			_, err := io.ReadFull(in, b)
			require.NoError(t, err)
			require.Zero(t, time.Since(start), "only the end is late")
			got = b
			late := make(chan struct{})
			go func() { close(late) }() // as the server of p9 starts a goroutine
			_, err = in.Read(b)
			select {
			case <-late:
			default:
				t.Error("the goroutine has not run")
			}
			return err
		}))
		err := h.Handle(io.NopCloser(bytes.NewReader([]byte{1, 2})), discardCloser{io.Discard})
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, endDelay, time.Since(start))
		require.Equal(t, []byte{1, 2}, got)
	})
}

func TestDelayEndOfHandlerThatPanics(t *testing.T) {
	h := DelayEnd(handlerFunc(func(io.ReadCloser, io.WriteCloser) error { panic("misuse") }))
	err := h.Handle(nil, nil)
	require.ErrorContains(t, err, "the handler panicked: misuse")
}
