package stream

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

var (
	shutdown   = wire.NewMessage(wire.OpCtrl, wire.CtrlShutdown)
	disconnect = wire.NewMessage(wire.OpCtrl, wire.CtrlDisconnect)
)

var common = sizes{half: 4096, credits: 16, ring: 4096}

// begun returns a stream whose first SGL was sent.
func begun(t testing.TB) *Stream {
	s := New(common.config(), common.private())
	w, ok := s.Next()
	require.True(t, ok)
	require.Equal(t, wire.NewMessage(wire.OpSGL, 16), w.Message)
	require.Equal(t, OneSlot, w.Writes)
	require.EqualValues(t, wire.SlotSize, w.Addr, "the second slot")
	require.Equal(t, wire.Slot{Addr: 4096, Key: simKey, Length: 4096}, w.Slot, "the second half")
	_, ok = s.Next()
	require.False(t, ok)
	return s
}

// TestRSK_10_MessagesOfTheEnd goes through the table of the end: what each side does, in order, what this side
// sends for it, and what follows.
func TestRSK_10_MessagesOfTheEnd(t *testing.T) {
	type step struct {
		do   func(s *Stream)
		gets wire.Message // 0: nothing comes
		says wire.Message // 0: nothing is sent
	}
	shut, closes := step{do: (*Stream).Shutdown, says: shutdown}, step{do: (*Stream).Disconnect, says: disconnect}
	second := step{do: (*Stream).Shutdown, says: disconnect}
	nothing := step{do: (*Stream).Disconnect}
	for _, c := range []struct {
		name                      string
		steps                     []step
		writable, complete, reset bool
	}{
		{"shutdown", []step{shut}, false, false, false},
		{"shutdown, and a shutdown of the peer: both have said it, and it is over", []step{shut, {gets: shutdown}, nothing}, false, true, false},
		{"shutdown, and the peer disconnects", []step{shut, {gets: disconnect}, nothing}, false, true, true},
		{"shutdown, then close", []step{shut, closes}, false, false, false},
		{"a second shutdown says nothing", []step{shut, {do: (*Stream).Shutdown}}, false, false, false},
		{"the peer shuts down: this side may write", []step{{gets: shutdown}}, true, true, false},
		{"the peer shuts down, then this side does, and disconnects", []step{{gets: shutdown}, second, nothing}, false, true, false},
		{"the peer shuts down, then this side closes", []step{{gets: shutdown}, closes}, false, true, false},
		{"close", []step{closes, nothing}, false, false, false},
		{"the peer disconnects", []step{{gets: disconnect}, nothing, {do: (*Stream).Shutdown}}, false, true, true},
		{"what comes after close means nothing", []step{closes, {gets: wire.NewMessage(3, 1)}}, false, false, false},
	} {
		s := begun(t)
		for i, step := range c.steps {
			if step.do != nil {
				step.do(s)
			} else {
				require.NoError(t, s.Message(step.gets, nil), c.name)
			}
			w, ok := s.Next()
			require.Equal(t, step.says != 0, ok, "%s: step %d sends %v", c.name, i, w.Message)
			require.Equal(t, step.says, w.Message, c.name)
		}
		require.Equal(t, c.writable, s.Writable(), c.name)
		require.Equal(t, c.complete, s.Complete(), c.name)
		require.Equal(t, c.reset, s.Reset(), c.name)
	}
}

// TestRSK_10_TheEndIsBehindWhatIsQueued: DISCONNECT waits for octets that wait for credits, until Abandon
// drops them.
func TestRSK_10_TheEndIsBehindWhatIsQueued(t *testing.T) {
	s := begun(t)
	for range 8 {
		s.Queue(1)
		w, ok := s.Next()
		require.True(t, ok)
		require.Equal(t, wire.NewMessage(wire.OpData, 1), w.Message)
		s.Completed()
	}
	s.Queue(1)
	s.Disconnect()
	_, ok := s.Next()
	require.False(t, ok, "the peer has acknowledged nothing of so many messages")
	require.False(t, s.Flushed())
	s.Abandon()
	w, ok := s.Next()
	require.True(t, ok)
	require.Equal(t, disconnect, w.Message)
	s.Completed()
	require.False(t, s.Flushed(), "it is with the QP")
	s.Completed()
	require.True(t, s.Flushed())
	require.EqualValues(t, 8, s.out.queued, "what is given up has never been there")
}

// TestRSK_10_ADisconnectDropsWhatIsQueued, since the peer no longer takes it.
func TestRSK_10_ADisconnectDropsWhatIsQueued(t *testing.T) {
	s := begun(t)
	s.Queue(4096)
	require.NoError(t, s.Message(disconnect, nil))
	_, ok := s.Next()
	require.False(t, ok)
	s.Completed()
	require.True(t, s.Flushed())
}
