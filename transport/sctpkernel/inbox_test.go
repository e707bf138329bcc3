package sctpkernel

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

func numbered(i int) *message { return &message{ppid: uint32(i)} }

func TestInboxKeepsTheOrder(t *testing.T) {
	var b inbox
	b.init()
	next, put := 0, 0
	for round := range 200 {
		for range round % 7 {
			b.put(numbered(put))
			put++
		}
		for range min(round%5, put-next) {
			m, err := b.take()
			require.NoError(t, err)
			require.EqualValues(t, next, m.ppid)
			next++
		}
	}
	require.LessOrEqual(t, cap(b.queue), 2*put)
	require.Len(t, b.takeAll(), put-next)
}

func TestInboxWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b inbox
		b.init()
		errs := make(chan error, 2)
		take := func() {
			_, err := b.take()
			errs <- err
		}
		go take()
		synctest.Wait()
		b.wake()
		require.ErrorIs(t, <-errs, transport.ErrWoken)
		b.wake()
		b.put(numbered(1))
		why := errors.New("over")
		b.close(why)
		take()
		require.ErrorIs(t, <-errs, transport.ErrWoken, "a wake is not lost")
		take()
		require.NoError(t, <-errs, "what came before the end")
		take()
		require.Equal(t, why, <-errs)
	})
}

func TestHoldIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h hold
		h.init()
		taken := 0
		go func() {
			for range 3 {
				h.take(holdLimit)
				taken++
			}
		}()
		synctest.Wait()
		require.Equal(t, 2, taken, "one beyond the limit, so that any one has room")
		h.give(holdLimit)
		synctest.Wait()
		require.Equal(t, 3, taken)
		go h.take(1)
		synctest.Wait()
		h.close()
	})
}

func TestMessagesTakeTheLeastBuffer(t *testing.T) {
	for n, size := range map[int]int{1: 256, 256: 256, 257: 2048, 2049: 9216, 9216: 9216} {
		m := newMessage(len(classes) - 1)
		for i := range n {
			m.buf[i] = byte(i)
		}
		m.n, m.stream, m.ppid = n, 3, 16
		want := string(m.bytes())
		m = m.fitted()
		require.Len(t, m.buf, size)
		require.Equal(t, want, string(m.bytes()))
		require.EqualValues(t, 3, m.stream)
		require.EqualValues(t, 16, m.ppid)
		require.False(t, m.notification)
		m.free()
	}
}
