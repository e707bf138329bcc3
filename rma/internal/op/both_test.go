package op

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRMA_3_HelloComesFirst(t *testing.T) {
	var i, r Hello
	require.True(t, i.Start(epoch, true, time.Second))
	require.False(t, r.Start(epoch, false, time.Second))
	send, why := r.Receive(TypeHello)
	require.True(t, send)
	require.Zero(t, why)
	send, why = i.Receive(TypeHello)
	require.False(t, send)
	require.Zero(t, why)
	for _, h := range []*Hello{&i, &r} {
		require.Equal(t, HelloDone, h.State())
		_, ok := h.Deadline()
		require.False(t, ok)
		send, why = h.Receive(TypeReadReq)
		require.False(t, send)
		require.Zero(t, why)
		_, why = h.Receive(TypeHello)
		require.Equal(t, NotFirst, why, "a second one")
		require.Equal(t, HelloFailed, h.State())
		_, why = h.Receive(TypeReadReq)
		require.Equal(t, NotFirst, why)
	}
	for _, initiator := range []bool{true, false} {
		for m := TypeOpenReq; m <= TypeRekeyDone+1; m++ {
			var h Hello
			h.Start(epoch, initiator, time.Second)
			send, why := h.Receive(m)
			require.False(t, send)
			require.Equal(t, NotFirst, why, m)
		}
	}
}

func TestRMA_3_HelloMustComeInTime(t *testing.T) {
	for _, initiator := range []bool{true, false} {
		var h Hello
		h.Start(epoch, initiator, time.Second)
		due, ok := h.Deadline()
		require.True(t, ok)
		require.Zero(t, h.Tick(due.Add(-1)))
		require.Equal(t, NoHello, h.Tick(due))
		require.Equal(t, HelloFailed, h.State())
	}
}

// TestRMA_38_EachMessageHasOneRole: both sides are client and server, and the IDs are the same.
func TestRMA_38_EachMessageHasOneRole(t *testing.T) {
	for m, want := range map[Type]Role{
		TypeHello: NoRole, TypeOpenReq: ServerRole, TypeOpenRep: ClientRole, TypeReadReq: ServerRole, TypeReadDone: ClientRole,
		TypeWriteReq: ServerRole, TypePull: ClientRole, TypeData: ServerRole, TypeWriteDone: ClientRole, TypeStatus: ClientRole,
		TypeRekeyReq: ServerRole, TypeRekeyDone: ClientRole, 13: NoRole,
	} {
		require.Equal(t, want, (&Message{Type: m}).Role(), m)
	}
	for _, c := range []struct {
		m    Message
		want Role
	}{
		{status(1, NACK, TooLate, ServerRole), ServerRole}, // for a PULL with a sink
		{status(1, NACK, TooLate, NoRole), ServerRole},     // for one without
		{status(1, NACK, TooLate, ClientRole), ClientRole}, // for a read
		{status(1, NACK, QueueFull, NoRole), ClientRole},
		{status(1, RemoteAuth, TooLate, NoRole), ClientRole},
		{status(1, RemoteAuth, BadKey, ClientRole), ClientRole},
	} {
		require.Equal(t, c.want, c.m.Role())
	}
}

func TestRMA_2_OperationIDs(t *testing.T) {
	require.Equal(t, ID(0x0005000000000009), NewID(5, 9))
	id := NewID(0xffff, 1<<48-1)
	require.EqualValues(t, 0xffff, id.Slot())
	require.Equal(t, uint64(1<<48-1), id.Sequence())
	require.EqualValues(t, 1, NewID(0, 1<<48|1), "a sequence number does not get into the slot")
}

// TestRMA_26_ClockDoesNotGoBackwards: callers read the clock before they take the lock.
func TestRMA_26_ClockDoesNotGoBackwards(t *testing.T) {
	c := newClock(epoch)
	require.Equal(t, 5*ms, c.at(epoch.Add(5*ms)))
	require.Equal(t, 5*ms, c.at(epoch.Add(3*ms)))
	require.Equal(t, never, c.limit(0))
	_, ok := c.deadline()
	require.False(t, ok)
	require.Equal(t, 7*ms, c.timer(2*ms))
	c.timer(3 * ms)
	at, ok := c.deadline()
	require.True(t, ok)
	require.Equal(t, epoch.Add(7*ms), at)
}
