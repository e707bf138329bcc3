package target

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// TestRemovedAndAddedAtOnce: a namespace added while its predecessor with the same NSID is being removed stays.
func TestRemovedAndAddedAtOnce(t *testing.T) {
	w := newWorld(t, "pipe", nil, nil)
	s := newHost(t, w.addr).connect(0)
	s.admin.send(capsule.AsyncEventSQE(0))
	s.admin.ok(capsule.SetFeatures{FID: capsule.FeatureAsyncEvents, Value: capsule.NoticeNamespaces}.SQE(0, capsule.NullSGL()))
	q := w.queue(0)
	q.mu.Lock() // RemoveNamespace answers the Asynchronous Event Request behind this
	removed, added := make(chan error, 1), make(chan error, 1)
	go func() { removed <- w.target.RemoveNamespace(storage, 1) }()
	other := memoryOf(t, diskSize)
	defer other.Close()
	go func() {
		err := ErrExists
		for errors.Is(err, ErrExists) { // until RemoveNamespace has begun
			err = w.target.AddNamespace(storage, Namespace{NSID: 1, Backend: other})
		}
		added <- err
	}()
	var err error
	told := false
	select {
	case err = <-added:
		told = true
	case <-time.After(100 * time.Millisecond): // it waits
	}
	q.mu.Unlock()
	require.NoError(t, <-removed)
	if !told {
		err = <-added
	}
	require.NoError(t, err)
	larger := memoryOf(t, 2*diskSize)
	defer larger.Close()
	require.NoError(t, w.target.Resize(storage, 1, larger), "it is there")
	require.False(t, w.target.space(spaceID{storage, 1}).workers.ended())
	require.NoError(t, w.target.RemoveNamespace(storage, 1))
}
