package sctpkernel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// A fakeOwner keeps the streams on which the peer has begun.
type fakeOwner struct{ streams []*stream }

func (o *fakeOwner) asked(s *stream)      { o.streams = append(o.streams, s) }
func (o *fakeOwner) idled(*association)   {}
func (o *fakeOwner) ended(a *association) {}

// reuseTest runs a test with an association of three pairs whose kernel has room for so many
// messages. Two sessions have pair 0 and 1.
func reuseTest(t *testing.T, room int, f func(t *testing.T, k *fakeKernel, a *association, first *stream)) {
	outboxTest(t, room, func(t *testing.T, k *fakeKernel, _ *outbox, _ *stream) {
		a := &association{initiator: true, owner: &fakeOwner{}, pairs: 3, streams: make(map[uint16]*stream), out: outbox{sock: k}}
		first := openPair(t, a)
		require.EqualValues(t, 0, first.id)
		require.EqualValues(t, 1, openPair(t, a).id)
		f(t, k, a, first)
		a.out.wait()
	})
}

func openPair(t *testing.T, a *association) *stream {
	t.Helper()
	s, ok := a.Open()
	require.True(t, ok)
	return s.(*stream)
}

func TestSCTP_31_PairsAreNotUsedAgainBeforeAllIsAcknowledged(t *testing.T) {
	reuseTest(t, 9, func(t *testing.T, k *fakeKernel, a *association, first *stream) {
		require.NoError(t, first.Send(sctp.PPIDControl, octets(4), true))
		first.Release(true)
		require.EqualValues(t, 2, openPair(t, a).id, "pair 0 has a message outstanding")
		_, ok := a.Open()
		require.False(t, ok, "and no other is left")
		k.memory = 0
		again := openPair(t, a)
		require.EqualValues(t, 0, again.id, "all is acknowledged")
		require.NotSame(t, first, again)
	})
}

// TestSCTP_31_TerminateThatWaitsForRoom: the kernel has not even taken it.
func TestSCTP_31_TerminateThatWaitsForRoom(t *testing.T) {
	reuseTest(t, 1, func(t *testing.T, k *fakeKernel, a *association, first *stream) {
		require.NoError(t, first.Send(sctp.PPIDSegment, octets(100), false))
		require.ErrorIs(t, first.Send(sctp.PPIDSegment, octets(100), false), transport.ErrAgain)
		require.NoError(t, first.Send(sctp.PPIDControl, octets(4), true))
		first.Release(true)
		k.memory = 0
		require.EqualValues(t, 2, openPair(t, a).id, "the Terminate of the session on pair 0 has not left")
		k.room = 9
		k.roomMade <- struct{}{}
		a.out.wait()
		_, ok := a.Open()
		require.False(t, ok, "it is not acknowledged")
		k.memory = 0
		require.EqualValues(t, 0, openPair(t, a).id)
	})
}

// TestSCTP_31_PairOfASessionThatWasNotEnded is never used again: the peer may still send.
func TestSCTP_31_PairOfASessionThatWasNotEnded(t *testing.T) {
	reuseTest(t, 9, func(t *testing.T, k *fakeKernel, a *association, first *stream) {
		first.Release(false)
		require.EqualValues(t, 2, openPair(t, a).id)
		_, ok := a.Open()
		require.False(t, ok)
	})
}

// TestSCTP_19_PeerIsQuickToBeginAnew: what it has sent on a pair whose session ends here is of
// the next session.
func TestSCTP_19_PeerIsQuickToBeginAnew(t *testing.T) {
	for _, clean := range []bool{true, false} {
		outboxTest(t, 0, func(t *testing.T, k *fakeKernel, _ *outbox, _ *stream) {
			o := &fakeOwner{}
			a := &association{owner: o, pairs: 3, streams: make(map[uint16]*stream), out: outbox{sock: k}}
			a.held.init()
			s := a.newStream(2)
			m := newMessage(0)
			m.stream, m.ppid, m.n = 2, sctp.PPIDControl, copy(m.buf, "Initiate")
			a.held.take(m.cost())
			s.in.put(m)
			s.Release(clean)
			if !clean {
				require.Empty(t, o.streams, "nobody can have the pair any more")
				return
			}
			require.Len(t, o.streams, 1)
			next := o.streams[0]
			require.NotSame(t, s, next)
			require.EqualValues(t, 2, next.id)
			b := make([]byte, 16)
			n, ppid, err := next.Receive(b)
			require.NoError(t, err)
			require.Equal(t, "Initiate", string(b[:n]))
			require.EqualValues(t, sctp.PPIDControl, ppid)
		})
	}
}

func octets(n int) []byte { return make([]byte, n) }
