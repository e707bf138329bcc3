package rdma9p

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

func TestP9R_7_AnswersInAnyOrder(t *testing.T) {
	const depth = 64
	s := newScript(t)
	w := serve(t, "pipe", t.Name(), s, Config{})
	p := w.dial(minMsize)
	p.version(minMsize)
	for i := range depth {
		p.send(message(tread, uint16(i), numbers(uint32(i), 0, 0, 10)...))
	}
	for i := range depth {
		require.EqualValues(t, i, parseHeader(s.next()).tag, "the handler has all of them at a time")
	}
	for i := range depth {
		s.answer(message(tread+1, uint16((i*37+5)%depth), numbers(0)...))
	}
	for i := range depth {
		require.EqualValues(t, (i*37+5)%depth, parseHeader(p.recv()).tag)
	}
	s.done()
}

// TestP9R_3_9_AllReceivesArePosted: the handler has up to depth requests, and as many more are in the receives.
func TestP9R_3_9_AllReceivesArePosted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const depth = 16
		s := newScript(t)
		w := serve(t, "pipe", t.Name(), s, Config{Depth: depth, QP: iwarp.QPConfig{RNRWait: -1}})
		p := w.dial(minMsize)
		p.version(minMsize)
		for i := range 2 * depth {
			p.send(message(tread, uint16(i), make([]byte, 16)...))
			synctest.Wait() // the handler reads it, so that its receive is posted again
		}
		require.Len(t, s.requests, depth)
		require.Equal(t, iwarp.StateRTS, p.qp.State(), "each message has found a receive")
		p.send(message(tread, 999, make([]byte, 16)...))
		p.wantEnd("no receive is left")
	})
}

func TestP9R_9_MoreRequestsThanDepth(t *testing.T) {
	const depth, rq = 8, 256
	s := newScript(t)
	w := serve(t, "pipe", t.Name(), s, Config{Depth: depth})
	p := w.dial(minMsize)
	p.version(minMsize)
	for i := range rq {
		p.send(message(tread, uint16(i), make([]byte, 16)...))
	}
	for i := range rq {
		// The handler has at most depth requests.
		msg := s.next()
		require.EqualValues(t, i, parseHeader(msg).tag)
		if i >= depth-1 {
			s.answer(message(tread+1, uint16(i-depth+1), numbers(0)...))
		}
	}
	for i := rq - depth + 1; i < rq; i++ {
		s.answer(message(tread+1, uint16(i), numbers(0)...))
	}
	for i := range rq {
		require.EqualValues(t, i, parseHeader(p.recv()).tag)
	}
	s.done()
}

// TestP9R_9_12_RequestsThatWaitTooLong: there is a limit to how long requests wait for a receive.
func TestP9R_9_12_RequestsThatWaitTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const depth = 4
		s := newScript(t)
		w := serve(t, "pipe", t.Name(), s, Config{Depth: depth})
		p := w.dial(minMsize)
		p.version(minMsize)
		start := time.Now()
		for i := range 3 * depth { // with the handler, in the receives, and waiting
			p.send(message(tread, uint16(i), make([]byte, 16)...))
		}
		p.wantEnd("no receive")
		require.ErrorIs(t, p.qp.Err(), iwarp.ErrNoReceive)
		require.Equal(t, 30*time.Second, time.Since(start).Truncate(time.Second))
		synctest.Wait()
		require.Len(t, s.requests, depth)
		s.done()
		w.stopped()
	})
}
