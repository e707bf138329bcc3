package qpconn

import (
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

func TestNothingButTerminate(t *testing.T) {
	var s rdmap.Stats
	s.Out[rdmap.OpWrite].Messages = 1
	s.In[rdmap.OpTerminate].Messages = 1
	require.True(t, NothingButTerminate(s))
	s.In[rdmap.OpReadRequest].Messages = 1
	require.False(t, NothingButTerminate(s))
}

func TestErrorThatIsOfNoMessage(t *testing.T) {
	require.Equal(t, rdmap.StatusFlushed, ReceiveStatus(errors.New("of something else")))
}

func TestEndedMatchesClosed(t *testing.T) {
	err := EndError(transport.Faultf(transport.MPAConnectionLost, "reset"))
	require.ErrorIs(t, err, net.ErrClosed)
	require.EqualError(t, err, "iwarp: connection lost: reset")
	require.Equal(t, err, EndError(err))
	require.EqualError(t, EndError(errors.New("iwarp: aborted")), "iwarp: queue pair closed: aborted")
}

// TestWithoutAConnection: on a nil Conn, Nudge and Waited do nothing.
func TestWithoutAConnection(*testing.T) {
	var c *Conn
	c.Nudge()
	c.Waited()
}
