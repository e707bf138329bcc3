package model

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// TestConcurrentUse: queues, configuration changes and time proceed at once, under the race detector.
func TestConcurrentUse(t *testing.T) {
	const rounds = 300
	w := newWorld(t)
	w.add(namespace(1))
	admin := w.ready()
	lines := []*line{admin.io(1), admin.io(2)}
	var commands, all sync.WaitGroup
	for _, l := range lines {
		read := l.read(0, 1)
		commands.Go(func() {
			for i := range rounds {
				read.CID = uint16(i)
				out := l.q.Command(time.Duration(i), read.Append(nil), nil)
				if len(out) == 1 && out[0].Do == DoExecute && l.q.Begin(out[0].Ref) {
					commands.Go(func() { l.q.Finish(out[0].Ref, capsule.Success, nil) })
				}
			}
		})
	}
	all.Go(func() {
		for i := range rounds {
			event := capsule.AsyncEventSQE(uint16(i))
			admin.q.Command(0, event.Append(nil), nil)
			abort := capsule.Abort{SQID: 1, CID: uint16(i)}.SQE(1000)
			admin.q.Command(0, abort.Append(nil), nil)
		}
	})
	all.Go(func() {
		for range rounds {
			_, out, err := w.target.AddNamespace(storage, namespace(2), nil)
			if err == nil {
				_, err = w.target.RemoveNamespace(storage, 2, out)
			}
			if err != nil {
				t.Error(err)
			}
			w.target.Tick(0, nil)
		}
	})
	all.Wait()
	reset := capsule.SetProperty(capsule.PropCC, 0x460000).SQE(2000)
	admin.q.Command(0, reset.Append(nil), nil)
	for _, l := range lines {
		w.target.Lost(l.q, nil)
	}
	commands.Wait()
	require.Equal(t, disabled, admin.q.ctrl.state())
	require.Zero(t, admin.q.ctrl.io)
}
