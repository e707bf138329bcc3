package sctpudp

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/placertest"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// TestSEC_42_OldestSessionNotAskedForMakesRoom: a peer that uses streams and asks for
// nothing does not keep others out.
func TestSEC_42_OldestSessionNotAskedForMakesRoom(t *testing.T) {
	p := newPair(t)
	p.l.limit = 2
	silent := func() (ended chan struct{}) {
		ended = make(chan struct{})
		s, err := p.c.Open(context.Background(), p.l.Addr().String())
		require.NoError(t, err)
		turn := p.l.admits()
		require.NotNil(t, turn)
		go func() {
			defer close(ended)
			defer turn.end()
			p.l.asked(turn.ctx, s.(*stream)) // nothing ever comes on it
		}()
		return ended
	}
	oldest, next := silent(), silent()
	last := p.l.admits()
	require.NotNil(t, last, "there is room for one more")
	defer last.end()
	select {
	case <-oldest:
	case <-time.After(setupTime / 2):
		require.Fail(t, "the oldest is not given up")
	}
	select {
	case <-next:
		require.Fail(t, "one is enough")
	default:
	}
	p.works()
}

// TestTurnThatWasGivenUpHasTheReason: it is not the end of the Listener, which nothing counts.
func TestTurnThatWasGivenUpHasTheReason(t *testing.T) {
	p := newPair(t)
	p.l.limit = 1
	oldest, next := p.l.admits(), p.l.admits()
	defer oldest.end()
	defer next.end()
	require.ErrorIs(t, context.Cause(oldest.ctx), sctp.ErrGivenUp)
	require.NoError(t, next.ctx.Err())
	p.l.Close()
	require.ErrorIs(t, context.Cause(next.ctx), context.Canceled)
}

// TestSEC_42_TurnsThatWereGivenUp and have not ended are bounded, and one that is refused takes the place of none.
func TestSEC_42_TurnsThatWereGivenUp(t *testing.T) {
	guarded(t, func(x *victim) {
		x.l.limit = 2
		var turns []*turn
		for range 2 * x.l.limit {
			turns = append(turns, x.l.admits())
			require.NotNil(t, turns[len(turns)-1])
		}
		require.Nil(t, x.l.admits())
		for i, turn := range turns {
			require.Equal(t, i < x.l.limit, turn.ctx.Err() != nil, "the older ones were given up")
		}
		turns[0].end()
		turns[0] = x.l.admits()
		require.NotNil(t, turns[0])
		for _, turn := range turns {
			turn.end()
		}
		require.Zero(t, x.l.unasked.Load())
		require.Zero(t, x.l.asking.Len())
	})
}

// begins sends one packet of the peer, with the last piece of a message on each of some streams. The rest never comes.
func (x *victim) begins(streams ...uint16) {
	var chunks []byte
	next := x.tsn()
	for i, stream := range streams {
		chunks = append(chunks, data(flagUnordered|flagEnding, next+uint32(i), stream, sctp.PPIDSegment, octets("41"))...)
	}
	x.says(victimTag, chunks)
}

// used reports whether a pair of streams is in use.
func (x *victim) used(id uint16) bool {
	x.a.mu.Lock()
	defer x.a.mu.Unlock()
	return x.a.streams[id] != nil
}

// wantAsking says how many turns there are when those that were given up have ended.
func (x *victim) wantAsking(n int) {
	x.Helper()
	require.EqualValues(x, n, x.l.asking.Len())
	require.EqualValues(x, n, x.l.unasked.Load())
}

// TestSEC_42_StreamsOfOnePacket: however many it has, another peer need not wait until their time is over.
func TestSEC_42_StreamsOfOnePacket(t *testing.T) {
	guarded(t, func(x *victim) {
		x.l.limit = 1
		begun := time.Now()
		x.begins(0, 1, 2, 3, 4, 5, 6)
		x.wantAsking(1)
		x.wants(x.session(7), 7)
		x.wantAsking(0)
		require.Zero(t, time.Since(begun))
	})
}

// TestSEC_42_ChunkThatThereIsNoRoomFor takes no turn, which would be that of another peer.
func TestSEC_42_ChunkThatThereIsNoRoomFor(t *testing.T) {
	guarded(t, func(x *victim) {
		x.l.limit = 1
		x.begins(1)
		x.a.room.octets.Add(receiveBuffer)
		x.begins(2)
		x.wantAsking(1)
		require.True(t, x.used(1))
		require.False(t, x.used(2))
		x.a.room.octets.Add(-receiveBuffer)
		x.begins(2)
		x.wantAsking(1)
	})
}

// TestSEC_42_SessionOfAnAssociationThatEnds has no turn: nothing waits for it.
func TestSEC_42_SessionOfAnAssociationThatEnds(t *testing.T) {
	guarded(t, func(x *victim) {
		x.a.Retire()
		require.Len(t, x.chunks(chunkShutdown), 1)
		x.begins(1)
		require.True(t, x.used(1))
		x.wantAsking(0)
	})
}

// TestSEC_42_SessionBehindTheEndOfAnother, which cannot be refused any more, takes the place of the oldest, too.
func TestSEC_42_SessionBehindTheEndOfAnother(t *testing.T) {
	guarded(t, func(x *victim) {
		x.l.limit = 1
		first := x.session(3)
		x.sack(1 << 20)
		require.NoError(t, first.CloseSend())
		x.says(victimTag, data(flagsMessage, x.tsn(), 3, sctp.PPIDControl, octets("0001 0004")))
		require.ErrorIs(t, placertest.Receive(first, &placertest.Collector{Want: 1}), io.EOF)
		x.begins(3, 4) // the first one belongs to the session
		x.wantAsking(1)
		require.NoError(t, first.Close())
		synctest.Wait()
		x.wantAsking(1)
		require.False(t, x.used(4))
	})
}

// TestBacklogOfNone is one of one session.
func TestBacklogOfNone(t *testing.T) {
	l, err := Listen(t.Context(), Config{}, "127.0.0.1:0", 0)
	require.NoError(t, err)
	defer l.End()
	p := &pair{TB: t, l: l, c: NewClient(Config{})}
	defer p.c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	p.client, p.server = p.session(ctx)
	p.works()
}
