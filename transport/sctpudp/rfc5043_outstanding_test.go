package sctpudp

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/placertest"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// A muteConn is a socket that loses what it sends while it is mute.
type muteConn struct {
	net.PacketConn
	mute *atomic.Bool
}

func (c *muteConn) WriteTo(p []byte, to net.Addr) (int, error) {
	if c.mute.Load() {
		return len(p), nil
	}
	return c.PacketConn.WriteTo(p, to)
}

// mutePair is a session whose client does not reach the server while it is mute.
func mutePair(t *testing.T) (p *pair, mute *atomic.Bool) {
	mute = new(atomic.Bool)
	l, err := Listen(t.Context(), Config{}, "127.0.0.1:0", 16)
	require.NoError(t, err)
	c := NewClient(Config{ListenPacket: func(ctx context.Context, network, address string) (net.PacketConn, error) {
		pc, err := new(net.ListenConfig).ListenPacket(ctx, network, address)
		return &muteConn{pc, mute}, err
	}})
	p = &pair{TB: t, l: l, c: c}
	t.Cleanup(func() {
		mute.Store(false)
		c.Close()
		l.End()
	})
	p.client, p.server = p.session(t.Context())
	return p, mute
}

// ours is the association of the client.
func (p *pair) ours() *association {
	p.Helper()
	all := p.c.pool.Associations()
	require.Len(p, all, 1)
	return all[0]
}

// stream is the client's on this pair.
func (p *pair) stream(id uint16) *stream {
	a := p.ours()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.streams[id]
}

// open takes a pair of streams at the client, and returns its number.
func (p *pair) open() uint16 {
	p.Helper()
	s, err := p.c.Open(p.Context(), p.l.Addr().String())
	require.NoError(p, err)
	return s.(*stream).id
}

// eventually waits until cond, asked with the lock of the client's association held, is true.
func (p *pair) eventually(what string, cond func(a *association) bool) {
	p.Helper()
	a := p.ours()
	require.Eventually(p, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return cond(a)
	}, 10*time.Second, time.Millisecond, what)
}

// TestSCTP_31_StreamsAreNotUsedAgainBeforeAllIsAcknowledged: both ends have terminated the
// session, and the Terminate of this end is still under way.
func TestSCTP_31_StreamsAreNotUsedAgainBeforeAllIsAcknowledged(t *testing.T) {
	p, mute := mutePair(t)
	_, _ = p.session(t.Context()) // without one the client would end the association
	first := p.stream(0)

	require.NoError(t, p.server.CloseSend())
	require.ErrorContains(t, placertest.Receive(p.client, &placertest.Collector{Want: 1}), "EOF")
	p.eventually("all else is acknowledged", func(*association) bool { return first.messages == 0 })
	mute.Store(true)
	require.NoError(t, p.client.Close())
	p.eventually("the session has ended", func(*association) bool { return first.state == given })
	require.EqualValues(t, 2, p.open(), "a pair that was never used, because 0 has a message outstanding")

	mute.Store(false)
	p.eventually("it is acknowledged", func(a *association) bool { return a.streams[0] == nil })
	require.EqualValues(t, 0, p.open(), "the pair can be used again")
}

// TestSCTP_31_StreamsThatThePeerHasBegunToUse: the client has refused what the peer asked for
// there, and its answer is still under way.
func TestSCTP_31_StreamsThatThePeerHasBegunToUse(t *testing.T) {
	p, mute := mutePair(t)
	theirs, ok := p.association().Open()
	require.True(t, ok)
	require.EqualValues(t, 1, theirs.(*stream).id)
	mute.Store(true)
	require.NoError(t, theirs.Send(sctp.PPIDControl, octets("0000 0001"), true))
	p.eventually("the session was refused", func(a *association) bool { return a.streams[1] != nil && a.streams[1].state == given })
	require.EqualValues(t, 2, p.open())
	mute.Store(false)
	p.eventually("all is acknowledged", func(a *association) bool { return a.streams[1] == nil })
	require.EqualValues(t, 1, p.open())
}

// TestPairsThatThePeerUsesAgainAndAgain are kept once each: a peer must not make this end remember
// every session that it was refused.
func TestPairsThatThePeerUsesAgainAndAgain(t *testing.T) {
	a := &association{owner: NewClient(Config{}), initiator: true, pairs: 3, next: 1, sessions: 1, streams: make(map[uint16]*stream)}
	for range 9 {
		for id := range uint16(3) {
			a.mu.Lock()
			s := a.newStream(id)
			a.mu.Unlock()
			a.ended(s, true)
		}
	}
	require.ElementsMatch(t, []uint16{0, 1, 2}, a.free)
	for range 3 {
		_, ok := a.take()
		require.True(t, ok)
	}
	_, ok := a.take()
	require.False(t, ok)
}

// TestRetiredAssociationOpensNoSession, although the last message is acknowledged meanwhile, and its pair given back.
func TestRetiredAssociationOpensNoSession(t *testing.T) {
	guarded(t, func(x *victim) {
		x.a.initiator = true
		s, ok := x.a.Open()
		require.True(t, ok)
		require.NoError(t, s.Send(sctp.PPIDControl, octets("0000 0004"), true))
		synctest.Wait()
		s.Release(true)
		x.a.Retire()
		x.a.acked(appendChunk(nil, chunkSack, 0, octets("00000064 00100000 0000 0000"))) // which pion does not see
		require.NoError(t, x.failure())
		require.Nil(t, x.a.streams[0])
		_, ok = x.a.take()
		require.False(t, ok)
	})
}

// TestSCTP_31_StreamsOfASessionThatWasNotEnded are never used again: the peer may still send.
func TestSCTP_31_StreamsOfASessionThatWasNotEnded(t *testing.T) {
	p, _ := mutePair(t)
	p.stream(p.open()).Release(false)
	require.EqualValues(t, 2, p.open())
	require.NotNil(t, p.stream(1))
}

// TestSCTP_29_LastMessageIsAcknowledged before Acked says so.
func TestSCTP_29_LastMessageIsAcknowledged(t *testing.T) {
	p, mute := mutePair(t)
	s := p.stream(p.open())
	mute.Store(true)
	require.NoError(t, s.Send(sctp.PPIDControl, octets("0000 0001"), true))
	now := make(chan struct{})
	close(now)
	require.False(t, s.Acked(now), "the one message is under way")
	mute.Store(false)
	late := make(chan struct{})
	defer time.AfterFunc(10*time.Second, func() { close(late) }).Stop()
	require.True(t, s.Acked(late))
}

// TestSCTP_46_OutstandingMessagesAreBounded, however small they are, and their octets,
// whatever the layer above does.
func TestSCTP_46_OutstandingMessagesAreBounded(t *testing.T) {
	for _, v := range []struct{ size, most int }{{1, sendMessages}, {1024, sendOctets / 1024}} {
		p, mute := mutePair(t)
		s := p.stream(p.open())
		mute.Store(true)
		n := 0
		for ; n <= v.most; n++ {
			err := s.Send(sctp.PPIDSegment, make([]byte, v.size), false)
			if err != nil {
				require.ErrorIs(t, err, transport.ErrAgain)
				break
			}
		}
		require.Equal(t, v.most, n, "messages of %d octets that are under way", v.size)
		require.Less(t, n, 1<<15, "what a DDP-SSN can tell apart")
		require.NoError(t, s.Send(sctp.PPIDControl, octets("0000 0004"), true), "a Terminate may go out all the same")

		now := make(chan struct{})
		close(now)
		s.Room(now)
		require.ErrorIs(t, s.Send(sctp.PPIDSegment, make([]byte, v.size), false), transport.ErrAgain, "there is no room yet")
		mute.Store(false)
		done := make(chan struct{})
		late := time.AfterFunc(10*time.Second, func() { close(done) })
		s.Room(done)
		require.True(t, late.Stop(), "a call that waits for room is told of it")
		require.NoError(t, s.Send(sctp.PPIDSegment, make([]byte, v.size), false))
	}
}
