package attempt

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

var errBusy = errors.New("busy")

// TestOnceSucceedsOnce: a call that fails or panics may be repeated. No call starts inside another one, and none starts
// after a success.
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
