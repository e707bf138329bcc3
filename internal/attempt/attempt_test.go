package attempt

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

var errBusy = errors.New("busy")

// TestOnceSucceedsOnce: what fails or panics is tried again, from inside a call there is no other,
// and after a success there is none at all.
func TestOnceSucceedsOnce(t *testing.T) {
	var o Once
	calls := 0
	refused := errors.New("refused")
	require.Equal(t, refused, o.Do(errBusy, func() error {
		calls++
		require.Equal(t, errBusy, o.Do(errBusy, func() error {
			calls++
			return nil
		}))
		return refused
	}))
	require.Panics(t, func() {
		_ = o.Do(errBusy, func() error {
			calls++
			panic("of the application")
		})
	})
	for range 3 {
		require.NoError(t, o.Do(errBusy, func() error {
			calls++
			return nil
		}))
	}
	require.Equal(t, 3, calls)
}
