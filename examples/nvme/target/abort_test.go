package target

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// TestNVME_57_AnotherCommandComesFirst: after the model has aborted a command, and before its response is sent, the
// queue's next command comes and gets the aborted command's slot. Neither receive is lost.
func TestNVME_57_AnotherCommandComesFirst(t *testing.T) {
	for name, srq := range map[string]int{"plain receives": 0, "an SRQ": 256} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				b, open := blocked(t, 1)
				w := newWorld(t, "pipe", &Config{SRQ: srq, Limits: Limits{Workers: 1}}, b)
				before := w.remains(t)
				s := newHost(t, w.addr).connect(0)
				l := s.queue(4, nil)
				write := rw(capsule.OpWrite, 1, 1, capsule.InCapsuleSGL(0, lba))
				running := l.send(write, pattern(lba, 1)...)
				aborted := l.send(write, pattern(lba, 2)...) // waits for the worker
				synctest.Wait()

				admin, acts := w.queue(0), w.target.actions.get()
				abort := capsule.Abort{SQID: 1, CID: aborted}.SQE(999)
				acts.list = admin.m.Command(w.target.now(), abort.Append(nil), acts.list)
				next := l.send(write, pattern(lba, 3)...)
				synctest.Wait()
				w.target.perform(admin, acts)

				require.Equal(t, capsule.StatusAbortRequested, l.wait(aborted).Status)
				close(open)
				require.Equal(t, capsule.Success, l.wait(running).Status)
				require.Equal(t, capsule.Success, l.wait(next).Status)
				for range 4 { // as many as there are receives
					l.send(capsule.FlushSQE(0, 1))
				}
				for range 4 {
					_, err := l.next()
					require.NoError(t, err)
				}
				require.NoError(t, s.rnic.Close())
				w.settled()
				require.Equal(t, before, w.remains(t))
			})
		})
	}
}

// TestNVME_80_HeadsAscend: the response to an aborted command follows one that the model has made later, and carries no
// older SQHD. A host would take the entries between the two for occupied.
func TestNVME_80_HeadsAscend(t *testing.T) {
	virtual(t, func(t *testing.T) {
		b, open := blocked(t, 1)
		w := newWorld(t, "pipe", &Config{Limits: Limits{Workers: 1}}, b)
		defer close(open)
		l := newHost(t, w.addr).connect(0).queue(8, nil)
		write := rw(capsule.OpWrite, 1, 1, capsule.InCapsuleSGL(0, lba))
		l.send(write, pattern(lba, 1)...)
		aborted := l.send(write, pattern(lba, 2)...) // waits for the worker
		synctest.Wait()

		admin, acts := w.queue(0), w.target.actions.get()
		abort := capsule.Abort{SQID: 1, CID: aborted}.SQE(999)
		acts.list = admin.m.Command(w.target.now(), abort.Append(nil), acts.list)
		later := l.writeInside(1<<40, pattern(lba, 3))
		require.Equal(t, capsule.StatusLBAOutOfRange, later.Status)
		w.target.perform(admin, acts)

		a := l.wait(aborted)
		require.Equal(t, capsule.StatusAbortRequested, a.Status)
		require.Equal(t, later.SQHD, a.SQHD)
		require.Equal(t, later.SQHD+1, l.writeInside(1<<40, pattern(lba, 3)).SQHD)
	})
}
