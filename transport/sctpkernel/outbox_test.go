package sctpkernel

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// A fakeKernel takes messages while it has room, and keeps them until they are
// acknowledged.
type fakeKernel struct {
	room    int // messages
	sent    []string
	memory  int
	drained chan struct{}
	end     error
}

func (k *fakeKernel) send(_ uint16, _ uint32, immediate bool, msg []byte) error {
	if k.room == 0 {
		return transport.ErrAgain
	}
	k.room--
	k.memory += len(msg) + 500
	if immediate {
		msg = append(msg, '!')
	}
	k.sent = append(k.sent, string(msg))
	return nil
}

func (k *fakeKernel) writable() (bool, error) {
	<-k.drained
	return true, k.end
}

func (k *fakeKernel) queued() (int, error) { return k.memory, nil }

// outboxTest runs a test with an outbox whose kernel has room for so many messages.
func outboxTest(t *testing.T, room int, f func(t *testing.T, k *fakeKernel, o *outbox, s *stream)) {
	synctest.Test(t, func(t *testing.T) {
		k := &fakeKernel{room: room, drained: make(chan struct{})}
		o := &outbox{sock: k}
		f(t, k, o, &stream{})
		o.wait()
	})
}

func TestUrgentMessagesWaitForRoom(t *testing.T) {
	outboxTest(t, 1, func(t *testing.T, k *fakeKernel, o *outbox, s *stream) {
		require.NoError(t, o.send(s, sctp.PPIDSegment, []byte("a"), false))
		require.ErrorIs(t, o.send(s, sctp.PPIDSegment, []byte("b"), false), transport.ErrAgain)
		require.NoError(t, o.send(s, sctp.PPIDControl, []byte("c"), true))
		require.True(t, o.waits(s))
		k.room = 9
		require.ErrorIs(t, o.send(s, sctp.PPIDSegment, []byte("d"), false), transport.ErrAgain, "not before what waits")
		room := make(chan struct{})
		go func() {
			o.await(nil)
			close(room)
		}()
		synctest.Wait()
		k.drained <- struct{}{}
		<-room
		require.False(t, o.waits(s))
		require.NoError(t, o.send(s, sctp.PPIDSegment, []byte("e"), false))
		require.Equal(t, []string{"a", "c!", "e"}, k.sent)
	})
}

func TestRoomThatIsTakenAtOnceIsWaitedForAgain(t *testing.T) {
	outboxTest(t, 0, func(t *testing.T, k *fakeKernel, o *outbox, s *stream) {
		require.NoError(t, o.send(s, sctp.PPIDControl, []byte("a"), true))
		k.drained <- struct{}{}
		synctest.Wait()
		require.Empty(t, k.sent)
		k.room = 1
		k.drained <- struct{}{}
		synctest.Wait()
		require.Equal(t, []string{"a!"}, k.sent)
	})
}

func TestWaitEndsWithTheGoroutineThatWaits(t *testing.T) {
	outboxTest(t, 0, func(t *testing.T, k *fakeKernel, o *outbox, s *stream) {
		var why error
		o.fail = func(err error) { why = err }
		require.ErrorIs(t, o.send(s, sctp.PPIDSegment, []byte("a"), false), transport.ErrAgain)
		done := make(chan struct{})
		close(done)
		o.await(done)
		go func() {
			o.await(nil)
		}()
		synctest.Wait()
		o.close()
		k.end = errors.New("closed")
		k.drained <- struct{}{}
		synctest.Wait()
		require.Equal(t, k.end, why)
		require.Error(t, o.send(s, sctp.PPIDSegment, []byte("a"), false))
	})
}

// TestUrgentMessagesAreBounded: a peer that asks for sessions and takes no answer gets no
// more of our memory.
func TestUrgentMessagesAreBounded(t *testing.T) {
	outboxTest(t, 0, func(t *testing.T, k *fakeKernel, o *outbox, s *stream) {
		o.fail = func(error) {}
		for range maxUrgent {
			require.NoError(t, o.send(s, sctp.PPIDControl, []byte("a"), true))
		}
		require.ErrorIs(t, o.send(s, sctp.PPIDControl, []byte("a"), true), errFlood)
		k.end = errFlood
		k.drained <- struct{}{}
	})
}

// TestSCTP_31_WhatIsAcknowledgedIsNotKept: a message is if the kernel keeps less memory
// than it takes with all after it.
func TestSCTP_31_WhatIsAcknowledgedIsNotKept(t *testing.T) {
	outboxTest(t, 100, func(t *testing.T, k *fakeKernel, o *outbox, s *stream) {
		require.True(t, o.acked(o.markOf(s)), "nothing was sent")
		require.NoError(t, o.send(s, sctp.PPIDControl, make([]byte, 4), true))
		last := o.markOf(s)
		require.False(t, o.acked(last))
		k.memory = 0
		require.True(t, o.acked(last))
		other := &stream{}
		for range 10 { // another session's, none of it acknowledged
			require.NoError(t, o.send(other, sctp.PPIDSegment, make([]byte, 1000), false))
		}
		k.memory = 4 + 10*1000 // the least that it can be with all of it
		require.False(t, o.acked(last))
		k.memory--
		require.True(t, o.acked(last))
		require.False(t, o.acked(o.markOf(other)))
	})
}
