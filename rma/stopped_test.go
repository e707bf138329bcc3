package rma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// stands lets time pass in which the client's process does not run. Then its timer fires before the client has read anything.
func (w *pair) stands(d time.Duration) {
	c := w.client.c
	c.mu.Lock()
	require.False(w, c.armed.IsZero(), "the timer runs")
	c.timer.Stop()
	c.mu.Unlock()
	time.Sleep(d)
	c.rings()
}

// TestClientThatWasStopped: it reads what has arrived before it reports a timeout. A message that arrives later is too late.
func TestClientThatWasStopped(t *testing.T) {
	for _, answered := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			w := start(t, plan{})
			h, p := w.opens(), w.portal(1)
			s := w.stall()
			_, err := p.Post(Command{Op: Write, Handle: h, Buf: octets(1, 64)})
			require.NoError(t, err)
			s.wait()
			w.stands(time.Hour)
			if answered {
				s.release()
			} else {
				time.AfterFunc(2*readFirst, s.release)
			}
			var one [1]Completion
			began := time.Now()
			_, err = p.Wait(w.context(), one[:])
			require.NoError(t, err)
			if answered {
				require.NoError(t, one[0].Err)
			} else {
				require.ErrorIs(t, one[0].Err, ErrTimeout)
				require.Equal(t, readFirst, time.Since(began))
			}
			synctest.Wait()
			time.Sleep(time.Minute)
			require.NoError(t, w.client.Err())
			require.NoError(t, does(t, p, Command{Op: Read, Handle: h, Buf: make([]byte, 64)}).Err, "and all is as before")
		})
	}
}
