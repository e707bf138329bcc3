package setup

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// endTime is how long an association with a silent peer takes to end.
const endTime = 500 * time.Millisecond

type slowListener struct{ sessionListener }

func (slowListener) End() { time.Sleep(endTime) }

type slowClient struct{ sessionClient }

func (slowClient) Close() { time.Sleep(endTime) }

// TestManagerEndsItsAssociationsTogether: silent peers of many listeners take no longer than one.
func TestManagerEndsItsAssociationsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Manager{clients: map[string]sessionClient{SCTP: slowClient{}, SCTPUDP: slowClient{}}}
		for range 12 {
			m.sessions = append(m.sessions, slowListener{})
		}
		began := time.Now()
		m.Close()
		require.Equal(t, endTime, time.Since(began))
	})
}
