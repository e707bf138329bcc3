package qpconn

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rdmap"
)

func TestTerminateIsFirst(t *testing.T) {
	var s rdmap.Stats
	s.Out[rdmap.OpWrite].Messages = 1
	s.In[rdmap.OpTerminate].Messages = 1
	require.True(t, TerminateIsFirst(s))
	s.In[rdmap.OpReadRequest].Messages = 1
	require.False(t, TerminateIsFirst(s))
}

func TestErrorThatIsOfNoMessage(t *testing.T) {
	require.Equal(t, rdmap.StatusFlushed, ReceiveStatus(errors.New("of something else")))
}
