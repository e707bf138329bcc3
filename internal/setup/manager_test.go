package setup

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNothingIsPendingAfterClose, not even what the application has taken and never answered: else a gauge would not return to 0.
func TestNothingIsPendingAfterClose(t *testing.T) {
	for network, addr := range networks {
		m, other := newManager(t), newManager(t)
		l, err := m.Listen(someTime(t), network, addr, ListenConfig{SetupTimeout: time.Minute, ProgressTimeout: time.Minute, MaxHalfOpen: 4})
		require.NoError(t, err)
		own, _ := local(t)
		dialled := make(chan error, 1)
		go func() { dialled <- other.Dial(someTime(t), network, l.Addr().String(), own) }()
		q, err := l.Accept(someTime(t))
		require.NoError(t, err)
		require.Equal(t, 1, m.Pending(), network)
		m.Refuse(errClosed)
		m.Wait()
		m.Close()
		require.Zero(t, m.Pending(), network)
		require.Error(t, <-dialled)
		its, _ := local(t)
		require.Error(t, q.Accept(someTime(t), its))
		require.Zero(t, m.Pending(), network)
	}
}

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
