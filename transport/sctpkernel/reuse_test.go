package sctpkernel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// A fakeOwner keeps the streams on which the peer has begun, and counts how often there was
// no session left.
type fakeOwner struct {
	streams []*stream
	idle    int
}

func (o *fakeOwner) asked(s *stream)      { o.streams = append(o.streams, s) }
func (o *fakeOwner) idled(*association)   { o.idle++ }
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
		_, ok = a.Open()
		require.False(t, ok, "it is taken")
	})
}

// TestSCTP_31_TerminateThatWaitsForRoom: the kernel has not even taken it.
func TestSCTP_31_TerminateThatWaitsForRoom(t *testing.T) {
	reuseTest(t, 1, func(t *testing.T, k *fakeKernel, a *association, first *stream) {
		require.NoError(t, first.Send(sctp.PPIDSegment, octets(100), false))
		require.ErrorIs(t, first.Send(sctp.PPIDSegment, octets(100), false), transport.ErrAgain)
		terminate := []byte("bye")
		require.NoError(t, first.Send(sctp.PPIDControl, terminate, true))
		clear(terminate) // it is the caller's again
		first.Release(true)
		k.memory = 0
		require.EqualValues(t, 2, openPair(t, a).id, "the Terminate of the session on pair 0 has not left")
		k.room = 9
		k.drained <- struct{}{}
		a.out.wait()
		require.Equal(t, "bye!", k.sent[1])
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

// TestSCTP_31_PairsThatThePeerHasBegunToUse are not for a session of ours.
func TestSCTP_31_PairsThatThePeerHasBegunToUse(t *testing.T) {
	reuseTest(t, 9, func(t *testing.T, k *fakeKernel, a *association, first *stream) {
		a.newStream(2)
		_, ok := a.Open()
		require.False(t, ok)
	})
}

// TestSCTP_31_PairsOnWhichThePeerWasRefused are for a session of ours when it has acknowledged that.
func TestSCTP_31_PairsOnWhichThePeerWasRefused(t *testing.T) {
	reuseTest(t, 9, func(t *testing.T, k *fakeKernel, a *association, first *stream) {
		theirs := a.newStream(2)
		require.NoError(t, theirs.Send(sctp.PPIDControl, octets(4), true))
		theirs.Release(true)
		_, ok := a.Open()
		require.False(t, ok)
		k.memory = 0
		require.EqualValues(t, 2, openPair(t, a).id)
		_, ok = a.Open()
		require.False(t, ok)
	})
}

// TestPairsThatThePeerUsesAgainAndAgain are kept once each: a peer must not make this end remember
// every session that it was refused.
func TestPairsThatThePeerUsesAgainAndAgain(t *testing.T) {
	reuseTest(t, 9, func(t *testing.T, k *fakeKernel, a *association, first *stream) {
		first.Release(true)
		var last *stream
		for range 9 {
			last = a.newStream(2)
			require.NoError(t, last.Send(sctp.PPIDControl, octets(4), true))
			k.memory = 0
			last.Release(true)
		}
		require.Equal(t, []*stream{first, last}, a.used)
		require.EqualValues(t, 0, openPair(t, a).id)
		require.EqualValues(t, 2, openPair(t, a).id)
		_, ok := a.Open()
		require.False(t, ok)
	})
}

func TestLastSessionAndTheEnd(t *testing.T) {
	reuseTest(t, 9, func(t *testing.T, k *fakeKernel, a *association, first *stream) {
		o := a.owner.(*fakeOwner)
		m := newMessage(0)
		m.n = copy(m.buf, "no session reads it")
		a.held.init()
		a.held.take(m.cost())
		first.in.put(m)
		first.Release(true)
		require.Empty(t, o.streams, "the peer does not begin sessions here")
		require.Zero(t, a.held.octets, "nor does what it sent take room")
		require.Zero(t, o.idle, "the session on pair 1 is left")
		a.streams[1].Release(true)
		require.Equal(t, 1, o.idle)
		a.mu.Lock()
		a.failure = errShutdown
		a.mu.Unlock()
		_, ok := a.Open()
		require.False(t, ok, "an association that has ended has no pairs")
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
				require.Empty(t, o.streams, "no session can have the pair any more")
				return
			}
			require.Len(t, o.streams, 1, "what the peer has begun anew is a session on the same pair")
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
