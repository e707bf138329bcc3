package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// A fullDisk accepts a number of writes.
type fullDisk struct {
	bytes.Buffer
	room int
}

var errFull = errors.New("no space left on device")

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.room--; d.room < 0 {
		return 0, errFull
	}
	return d.Buffer.Write(b)
}

// TestPrinting: a result that was not printed completely is a failure, and ends the production of the rest.
func TestPrinting(t *testing.T) {
	disk := &fullDisk{room: 1}
	err := Printing(t.Context(), disk, func(ctx context.Context, out io.Writer) error {
		fmt.Fprint(out, "one")
		require.NoError(t, ctx.Err())
		fmt.Fprint(out, "two")
		require.ErrorIs(t, context.Cause(ctx), errFull)
		return ctx.Err()
	})
	require.Equal(t, errFull, err)
	require.Equal(t, "one", disk.String())

	other := errors.New("other")
	for _, want := range []error{nil, other} {
		require.Equal(t, want, Printing(t.Context(), io.Discard, func(_ context.Context, out io.Writer) error {
			fmt.Fprint(out, "one")
			return want
		}))
	}
}
