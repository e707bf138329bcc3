package sctpudp

import (
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/placertest"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// accept takes the session that the peer has asked for.
func (x *victim) accept() *sctp.Conn {
	x.Helper()
	r, err := x.l.Accept()
	require.NoError(x, err)
	c, _, err := r.Accept(sctp.Options{}, 1, 1, nil)
	require.NoError(x, err)
	synctest.Wait()
	return c
}

// wants says that c gets a segment that the peer sends on a stream, as the first of the
// session.
func (x *victim) wants(c *sctp.Conn, stream uint16) {
	x.Helper()
	x.says(victimTag, data(flagsMessage, x.tsn(), stream, sctp.PPIDSegment, octets("0001 41")))
	p := &placertest.Collector{Want: 1}
	require.NoError(x, placertest.Receive(c, p))
	require.Equal(x, []string{"A"}, p.Got)
}

// TestSCTP_9_19_PeerBeginsAnew: on streams whose session has ended, though this end does not
// know yet that its Terminate has arrived. That is what the peer's new Initiate says.
func TestSCTP_9_19_PeerBeginsAnew(t *testing.T) {
	guarded(t, func(x *victim) {
		first := x.session(3)
		x.says(victimTag, data(flagsMessage, x.tsn(), 3, sctp.PPIDControl, octets("0001 0004")))
		require.ErrorIs(t, placertest.Receive(first, &placertest.Collector{Want: 1}), io.EOF)
		require.NoError(t, first.Close())
		synctest.Wait()
		x.says(victimTag, data(flagsMessage, x.tsn(), 3, sctp.PPIDControl, octets("0000 0001")))
		second := x.accept()
		x.sack(1 << 20) // of what both have sent
		x.wants(second, 3)
		require.NoError(t, second.Close())
	})
}

// TestSCTP_9_19_PeerIsQuickToBeginAnew: its Initiate has come when the session before it ends
// here.
func TestSCTP_9_19_PeerIsQuickToBeginAnew(t *testing.T) {
	guarded(t, func(x *victim) {
		first := x.session(3)
		require.NoError(t, first.CloseSend())
		x.sack(1 << 20)
		x.says(victimTag, append(
			data(flagsMessage, x.tsn(), 3, sctp.PPIDControl, octets("0001 0004")),
			data(flagsMessage, x.tsn()+1, 3, sctp.PPIDControl, octets("0000 0001"))...))
		require.ErrorIs(t, placertest.Receive(first, &placertest.Collector{Want: 1}), io.EOF, "the Initiate is none of its messages")
		require.NoError(t, first.Close())
		synctest.Wait()
		second := x.accept()
		x.wants(second, 3)
		x.says(victimTag, data(flagsMessage, x.tsn(), 3, sctp.PPIDControl, octets("0002 0004")))
		require.ErrorIs(t, placertest.Receive(second, &placertest.Collector{Want: 1}), io.EOF)
		require.NoError(t, second.Close())
		synctest.Wait()
		x.sack(1 << 20)
		x.a.mu.Lock()
		require.Empty(t, x.a.streams, "all is given back")
		require.Zero(t, x.a.sessions)
		x.a.mu.Unlock()
	})
}

// TestSCTP_19_PeerBeginsOnStreamsOfOurSession when that has ended, or before: it is refused, and nothing of
// that comes to our next session there.
func TestSCTP_19_PeerBeginsOnStreamsOfOurSession(t *testing.T) {
	for _, before := range []bool{false, true} {
		guarded(t, func(x *victim) {
			x.a.initiator, x.a.owner = true, NewClient(Config{})
			open := func() *stream {
				s, ok := x.a.Open()
				require.True(t, ok)
				return s.(*stream)
			}
			first, _ := open(), open() // with the last one the client would end the association
			require.NoError(t, first.Send(sctp.PPIDControl, octets("0001 0004"), true))
			require.Len(t, x.chunks(chunkData), 1)
			if !before {
				first.Release(true)
			}
			x.says(victimTag, data(flagsMessage, x.tsn(), 0, sctp.PPIDControl, octets("0000 0001")))
			if before {
				first.Release(true)
			}
			sent := x.chunks(chunkData)
			require.Len(t, sent, 1)
			require.Equal(t, octets("0000 0004"), []byte(sent[0][dataHeaderSize:]))
			x.sack(1 << 20)
			next := open()
			require.Zero(t, next.id)
			x.says(victimTag, data(flagsMessage, x.tsn(), 0, sctp.PPIDControl, octets("0000 0002")))
			got := make([]byte, 8)
			n, _, err := next.Receive(got)
			require.NoError(t, err)
			require.Equal(t, octets("0000 0002"), got[:n])
		})
	}
}

// TestSEC_42_PieceThatEndsNoMessage is no session of which the peer may still send more: such a session
// would count for ever among those that may be requested.
func TestSEC_42_PieceThatEndsNoMessage(t *testing.T) {
	const piece = flagUnordered | flagEnding
	guarded(t, func(x *victim) {
		c := x.session(3)
		require.NoError(t, c.CloseSend())
		x.sack(1 << 20)
		x.says(victimTag, data(flagsMessage, x.tsn(), 3, sctp.PPIDControl, octets("0001 0004")))
		require.ErrorIs(t, placertest.Receive(c, &placertest.Collector{Want: 1}), io.EOF)
		for _, stream := range []uint16{3, 4, 5} {
			x.says(victimTag, data(piece, x.tsn(), stream, sctp.PPIDControl, octets("0000 0001")))
		}
		require.NoError(t, c.Close()) // what came behind its end is asked about, too
		synctest.Wait()
		require.EqualValues(t, 3, x.l.unasked.Load())
		time.Sleep(setupTime + time.Second)
		synctest.Wait()
		require.Zero(t, x.l.unasked.Load())
		x.sack(1 << 20)
		require.Zero(t, x.l.asking.Len())
		require.NoError(t, x.failure())
		x.wants(x.session(6), 6)
	})
}

// TestSessionThatIsGivenUpWhenItsInitiateHasCome is looked at again.
func TestSessionThatIsGivenUpWhenItsInitiateHasCome(t *testing.T) {
	guarded(t, func(x *victim) {
		s := &stream{a: x.a, id: 3, incoming: 1, whole: 1}
		x.a.mu.Lock()
		x.a.streams[3] = s
		x.a.sessions++
		x.a.mu.Unlock()
		require.NoError(t, s.attach())
		x.a.ended(s, true)
		x.a.mu.Lock()
		defer x.a.mu.Unlock()
		require.NotSame(t, s, x.a.streams[3])
		require.NotNil(t, x.a.streams[3])
	})
}

// TestPeerThatBeginsAnewTooEarly: what the session before has sent waits for room. A peer that gives
// none could make this end keep the messages of any number of sessions.
func TestPeerThatBeginsAnewTooEarly(t *testing.T) {
	guarded(t, func(x *victim) {
		first := x.session(3)
		x.sack(0)
		for range 3 {
			require.True(t, first.Append([]byte("a segment"), nil, true))
			require.NoError(t, first.Flush(true))
		}
		x.says(victimTag, data(flagsMessage, x.tsn(), 3, sctp.PPIDControl, octets("0001 0004")))
		require.ErrorIs(t, placertest.Receive(first, &placertest.Collector{Want: 1}), io.EOF)
		require.NoError(t, first.Close())
		synctest.Wait()
		tsn := x.tsn()
		x.says(victimTag, data(flagsMessage, tsn, 3, sctp.PPIDControl, octets("0000 0001")))
		require.Equal(t, tsn, x.tsn(), "it is not taken")
		x.sack(1 << 20)
		x.sack(1 << 20)
		x.says(victimTag, data(flagsMessage, tsn, 3, sctp.PPIDControl, octets("0000 0001")))
		x.wants(x.accept(), 3)
	})
}

// TestPeerThatHasBegunAnewTooEarly: before the session ends here. The pair is not used again.
func TestPeerThatHasBegunAnewTooEarly(t *testing.T) {
	guarded(t, func(x *victim) {
		first := x.session(3)
		x.sack(0)
		require.True(t, first.Append([]byte("a segment"), nil, true))
		require.NoError(t, first.Flush(true))
		x.says(victimTag, append(
			data(flagsMessage, x.tsn(), 3, sctp.PPIDControl, octets("0001 0004")),
			data(flagsMessage, x.tsn()+1, 3, sctp.PPIDControl, octets("0000 0001"))...))
		require.ErrorIs(t, placertest.Receive(first, &placertest.Collector{Want: 1}), io.EOF)
		require.NoError(t, first.Close())
		synctest.Wait()
		require.Zero(t, x.l.unasked.Load())
		require.Zero(t, x.a.room.messages.Load(), "what has come is thrown away")
		x.sack(1 << 20)
		x.wants(x.session(4), 4)
	})
}

// TestSCTP_18_SessionThatIsAskedOfAClosedListener is refused, on an association that lives on for
// another one.
func TestSCTP_18_SessionThatIsAskedOfAClosedListener(t *testing.T) {
	guarded(t, func(x *victim) {
		c := x.session(3)
		x.sack(1 << 20)
		x.l.Close()
		x.chunks(chunkData)
		x.says(victimTag, data(flagsMessage, x.tsn(), 5, sctp.PPIDControl, octets("0000 0001")))
		sent := x.chunks(chunkData)
		require.Len(t, sent, 1)
		require.EqualValues(t, 5, sent[0].stream())
		require.Equal(t, octets("0000 0004"), []byte(sent[0][dataHeaderSize:]))
		x.wants(c, 3)
	})
}

// TestStreamsThatNoSessionCanHave cost nothing but their place: what comes on them is thrown away, and
// takes no room from the sessions of the others.
func TestStreamsThatNoSessionCanHave(t *testing.T) {
	guarded(t, func(x *victim) {
		c := x.session(0)
		x.sack(1 << 20)
		for stream := uint16(1); stream < 8; stream++ {
			x.says(victimTag, append(
				data(flagsMessage, x.tsn(), stream, sctp.PPIDControl, octets("0000 0004")), // no Initiate
				data(flagsMessage, x.tsn()+1, stream, sctp.PPIDControl, octets("0001 0004"))...))
			x.says(victimTag, data(flagsMessage, x.tsn(), stream, sctp.PPIDControl, octets("0000 0001")))
		}
		x.sack(1 << 20)
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		require.NotContains(t, string(stacks), "ReadSCTP", "no goroutine reads them")
		require.Zero(t, x.a.room.octets.Load())
		require.Zero(t, x.a.room.messages.Load())
		require.Len(t, x.chunks(chunkData), 1+7, "each was refused, once")
		x.wants(c, 0)
	})
}

// TestWaitOnStreamsThatAnotherSessionHas ends with the association: the Accept of the session before
// was never acknowledged.
func TestWaitOnStreamsThatAnotherSessionHas(t *testing.T) {
	guarded(t, func(x *victim) {
		first := x.session(3)
		require.NoError(t, first.CloseSend()) // waits
		x.says(victimTag, data(flagsMessage, x.tsn(), 3, sctp.PPIDControl, octets("0001 0004")))
		require.ErrorIs(t, placertest.Receive(first, &placertest.Collector{Want: 1}), io.EOF)
		require.NoError(t, first.Close())
		synctest.Wait()
		x.says(victimTag, data(flagsMessage, x.tsn(), 3, sctp.PPIDControl, octets("0000 0001")))
		x.accept()
		x.says(victimTag, appendChunk(nil, chunkAbort, 0, nil))
		require.ErrorIs(t, x.failure(), errReset)
	})
}
