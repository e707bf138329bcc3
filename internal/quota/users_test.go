package quota

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/lockorder"
)

// TestUsersPreventTheEnd: Close reports the present users, and closes the object when they are gone.
func TestUsersPreventTheEnd(t *testing.T) {
	var u Users[lockorder.PD]
	for _, k := range []Kind{QueuePairs, Regions, Regions, Windows, SharedReceiveQueues} {
		require.True(t, u.Add(k))
	}
	closed, users := u.Close()
	require.False(t, closed)
	require.Equal(t, "2 regions, 1 windows, 1 shared receive queues, 1 queue pairs", users)
	for _, k := range []Kind{Regions, Windows, Regions, SharedReceiveQueues} {
		u.Remove(k)
	}
	_, users = u.Close()
	require.Equal(t, "1 queue pairs", users)
	u.Remove(QueuePairs)
	for _, first := range []bool{true, false} {
		closed, users = u.Close()
		require.Equal(t, first, closed)
		require.Empty(t, users)
	}
	require.False(t, u.Add(Regions), "it is closed")
}
