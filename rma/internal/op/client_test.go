package op

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRMA_11_RequestOfAReadWaitsForItsGrant(t *testing.T) {
	c := newClient(t, nil)
	id := c.posts(getCmd, "Enqueue(116)")
	c.want("SendRequest", c.Granted(nil, c.now, id))
	c.hears(readDone(id), "OpenData")
	c.want("Release(OK), Complete(0, 0), Free", c.Opened(nil, c.now, id, true))
	require.True(t, c.Idle())
	c.want("Release(Failed)", c.Granted(nil, c.now, id))
}

func TestRMA_11_BlobOfAnotherLengthEndsTheConnection(t *testing.T) {
	c := newClient(t, nil)
	id := c.sent(getCmd)
	m := readDone(id)
	m.Length++
	c.hears(m, "End(4)")
	c.hears(readDone(id), "")
}

func TestRMA_12_SinkMustBeDeadWhenTheBlobIsOpened(t *testing.T) {
	for _, dead := range []Role{NoRole, ServerRole, OtherRole} {
		c := newClient(t, nil)
		m := readDone(c.sent(getCmd))
		m.Invalidated = dead
		c.hears(m, "End(4)")
		s := newServer(t, nil)
		m = data(s.pulled(writeReq(1)))
		m.Invalidated = (dead + 1) % 4
		if m.Invalidated != ServerRole {
			s.hears(m, "End(4)")
		}
	}
	c := newClient(t, nil)
	c.hears(status(c.sent(getCmd), NACK, QueueFull, NoRole), "End(4)")
}

func TestRMA_14_WriteTakesFourHops(t *testing.T) {
	c := newClient(t, nil)
	id := c.posts(putCmd, "SendRequest")
	c.hears(pull(id), "Seal")
	c.want("SendData", c.Sealed(nil, c.now, id))
	c.hears(writeDone(id), "Complete(0, 0), Free")
	require.True(t, c.Idle())
}

func TestRMA_14_MessagesOutOfTurnEndTheConnection(t *testing.T) {
	early := newClient(t, nil)
	id := early.sent(putCmd)
	early.hears(Message{Type: TypeWriteDone, Op: id, Length: 100}, "End(3)")

	sealing := newClient(t, nil)
	id = sealing.sent(putCmd)
	sealing.hears(pull(id), "Seal")
	sealing.hears(writeDone(id), "End(3)")

	twice := newClient(t, nil)
	id = twice.sent(putCmd)
	twice.hears(pull(id), "Seal")
	twice.hears(pull(id), "End(3)")

	other := newClient(t, nil)
	other.hears(pull(other.sent(getCmd)), "End(3)")

	unsent := newClient(t, nil)
	unsent.hears(readDone(unsent.posts(getCmd, "Enqueue(116)")), "End(3)")

	unknown := newClient(t, nil)
	unknown.hears(status(NewID(0, 1), NACK, QueueFull, NoRole), "End(3)")

	source := newClient(t, nil)
	m := pull(source.sent(putCmd))
	m.Source = true
	source.hears(m, "End(4)")

	noSource := newClient(t, nil)
	noSource.hears(pull(noSource.sent(sourceCmd)), "End(4)")

	opening := newClient(t, nil)
	id = opening.sent(getCmd)
	opening.hears(readDone(id), "OpenData")
	opening.hears(status(id, NACK, QueueFull, ClientRole), "End(3)")
}

func TestRMA_15_WriteDoneWithAnotherSaltEndsTheConnection(t *testing.T) {
	c := newClient(t, nil)
	id := c.sent(putCmd)
	c.hears(pull(id), "Seal")
	c.want("SendData", c.Sealed(nil, c.now, id))
	m := writeDone(id)
	m.Salt[15]++
	c.hears(m, "End(4)")
}

func TestRMA_17_StatusRefundsAtOnce(t *testing.T) {
	for o, want := range map[Outcome]string{NACK: "Release(NACK)", RemoteAuth: "Release(Failed)", Bounds: "Release(Failed)"} {
		c := newClient(t, nil)
		m := status(c.sent(getCmd), o, 1, ClientRole)
		m.RetryAfter = 3 * ms
		actions := c.Receive(nil, c.now, &m)
		require.Equal(t, want, text(actions[:1]))
		require.Equal(t, Complete, actions[1].Do)
		require.Equal(t, o, actions[1].Outcome)
		require.Equal(t, 3*ms, actions[1].RetryAfter)
		require.True(t, c.Idle())
	}
}

func TestRMA_18_PullStartsTheTimerAnew(t *testing.T) {
	c := newClient(t, nil)
	id := c.sent(putCmd)
	c.sleep(99 * ms)
	c.hears(pull(id), "Seal")
	c.want("SendData", c.Sealed(nil, c.now, id))
	c.waits(70*ms, "Complete(3, 0), Free")

	// The guard is never less than the rates of the clocks require.
	id = c.sent(putCmd)
	m := pull(id)
	m.Timeout = 30 * time.Second
	c.hears(m, "Seal")
	c.want("SendData", c.Sealed(nil, c.now, id))
	c.waits(30*time.Second+40*ms, "Complete(3, 0), Free")
}

func TestRMA_18_NoDataAfterTheTimer(t *testing.T) {
	c := newClient(t, nil)
	id := c.sent(putCmd)
	c.hears(pull(id), "Seal")
	c.sleep(70 * ms)
	c.want("Complete(3, 0), Free", c.Sealed(nil, c.now, id))
	c.hears(writeDone(id), "")
	require.Equal(t, ClientStats{Outcomes: [Outcomes]uint64{Timeout: 1}, Late: 1}, c.Stats())
}

func TestRMA_21_LossAfterDataIsToldWhenTheServerHasGivenUp(t *testing.T) {
	c := newClient(t, nil)
	id := c.sent(putCmd)
	c.hears(pull(id), "Seal")
	c.want("SendData", c.Sealed(nil, c.now, id))
	c.sleep(10 * ms)
	c.want("", c.Lost(nil, c.now))
	c.waits(60*ms, "Complete(3, 0) Gone, Free")
	require.True(t, c.Idle())
}

func TestRMA_21_LossBeforeDataIsToldAtOnce(t *testing.T) {
	c := newClient(t, func(cfg *ClientConfig) { cfg.Credits = 3 })
	sealing := c.sent(putCmd)
	c.hears(pull(sealing), "Seal")
	c.sent(putCmd)
	c.posts(getCmd, "Enqueue(116)")
	c.posts(getCmd, "")
	c.want("Complete(8, 0), Cancel, Complete(8, 0), Free, Complete(8, 0), Free", c.Lost(nil, c.now))
	c.want("Complete(8, 0), Free", c.Sealed(nil, c.now, sealing))
	require.True(t, c.Idle())
	c.want("", c.Lost(nil, c.now))
	_, _, err := c.Post(nil, c.now, getCmd)
	require.ErrorIs(t, err, ErrClosed)
}

// TestRMA_21_37_UnheardPull: after End the client receives nothing, and the server may read the source.
func TestRMA_21_37_UnheardPull(t *testing.T) {
	c := newClient(t, nil)
	c.sent(sourceCmd)
	c.hears(readDone(NewID(9, 9)), "End(3)")
	c.want("", c.Lost(nil, c.now))
	c.waits(70*ms, "Complete(3, 0) Gone, Free")

	c = newClient(t, nil)
	id := c.sent(sourceCmd)
	c.hears(readDone(NewID(9, 9)), "End(3)")
	c.waits(100*ms, "Revoke")
	c.want("", c.Revoked(nil, c.now, id))
	c.waits(70*ms, "Complete(3, 0) Gone, Free")
}

func TestRMA_22_LatePullIsRefused(t *testing.T) {
	c := newClient(t, nil)
	id := c.sent(putCmd)
	c.waits(100*ms, "Complete(3, 0)")
	require.False(t, c.Idle(), "its credit is used until the answer comes")
	c.hears(pull(id), "SendStatus(2, 3) Invalidate, Free")
	require.True(t, c.Idle())
	require.Equal(t, ClientStats{Outcomes: [Outcomes]uint64{Timeout: 1}, Late: 1, LatePulls: 1}, c.Stats())
}

// TestWriteWithoutMemoryFailsAlone: its request or its data are not sent, and its credit is free again.
func TestWriteWithoutMemoryFailsAlone(t *testing.T) {
	c := newClient(t, nil)
	source := putCmd
	source.Source = true
	c.want("Complete(4, 0), Free", c.Unsent(nil, c.now, c.posts(source, "SendRequest")))
	require.True(t, c.Idle())

	id := c.sent(putCmd)
	c.hears(pull(id), "Seal")
	c.want("SendStatus(2, 3) Invalidate, Complete(4, 0), Free", c.Unsent(nil, c.now, id))
	require.True(t, c.Idle())
	c.want("", c.Unsent(nil, c.now, id))

	id = c.sent(putCmd) // the server was faster
	c.hears(pull(id), "Seal")
	c.hears(status(id, NACK, Closing, NoRole), "")
	c.want("Complete(2, 4), Free", c.Unsent(nil, c.now, id))

	id = c.sent(putCmd) // it is too late to tell the server
	c.hears(pull(id), "Seal")
	c.sleep(time.Hour)
	c.want("Complete(3, 0), Free", c.Unsent(nil, c.now, id))

	id = c.sent(putCmd)
	c.hears(pull(id), "Seal")
	c.want("SendData", c.Sealed(nil, c.now, id))
	c.want("", c.Unsent(nil, c.now, id))
}

func TestRMA_23_24_LateBlobIsNotOpened(t *testing.T) {
	c := newClient(t, nil)
	id := c.sent(getCmd)
	c.waits(100*ms, "Hold, Complete(3, 0)")
	c.sleep(29 * ms)
	c.hears(readDone(id), "Release(Timeout), Free")
	require.True(t, c.Idle())
}

func TestRMA_24_LingerEndsInARevoke(t *testing.T) {
	c := newClient(t, nil)
	id := c.sent(getCmd)
	c.waits(100*ms, "Hold, Complete(3, 0)")
	next := c.sent(getCmd)
	require.Equal(t, id.Slot(), next.Slot(), "the slot is free, the sink is not")
	c.waits(30*ms, "Revoke, Release(Timeout)")
	c.want("", c.Revoked(nil, c.now, id))
	c.hears(readDone(id), "Free")
	c.hears(readDone(next), "OpenData")
}

// TestRMA_24_AnswerDuringTheRevoke: the answer has invalidated the sink first.
func TestRMA_24_AnswerDuringTheRevoke(t *testing.T) {
	c := newClient(t, nil)
	id := c.sent(getCmd)
	c.waits(100*ms, "Hold, Complete(3, 0)")
	c.waits(30*ms, "Revoke, Release(Timeout)")
	c.hears(status(id, NACK, TooLate, ClientRole), "")
	c.want("Free", c.Revoked(nil, c.now, id))
	require.True(t, c.Idle())
}

func TestRMA_25_WithoutLingerTheSinkIsRevokedAtOnce(t *testing.T) {
	c := newClient(t, func(cfg *ClientConfig) { cfg.Linger = 0 })
	id := c.sent(getCmd)
	c.waits(100*ms, "Hold, Complete(3, 0), Revoke, Release(Timeout)")
	c.want("", c.Revoked(nil, c.now, id))
}

// TestRMA_25_37_DirectSinkIsRevokedBeforeTheOutcome: it is memory of the caller.
func TestRMA_25_37_DirectSinkIsRevokedBeforeTheOutcome(t *testing.T) {
	c := newClient(t, nil)
	id := c.sent(directCmd)
	c.waits(100*ms, "Hold, Revoke")
	c.want("Release(Timeout), Complete(3, 0)", c.Revoked(nil, c.now, id))

	c = newClient(t, nil)
	id = c.sent(directCmd)
	c.waits(100*ms, "Hold, Revoke")
	c.hears(readDone(id), "Release(OK), Complete(0, 0)")
	c.want("Free", c.Revoked(nil, c.now, id))

	c = newClient(t, nil)
	c.hears(readDone(c.sent(directCmd)), "Release(OK), Complete(0, 0), Free")
}

func TestRMA_27_28_Outcomes(t *testing.T) {
	for code, want := range map[uint16]Outcome{
		1: RemoteAuth, 2: NACK, 5: Bounds, 6: RemoteError, 7: Conflict,
		0: RemoteError, 3: RemoteError, 4: RemoteError, 8: RemoteError, 9: RemoteError, 65535: RemoteError,
	} {
		require.Equal(t, want, told(code), code)
	}
	for o, want := range map[Outcome]bool{
		OK: false, RemoteAuth: true, NACK: true, Timeout: false, DispatchTimeout: true, Bounds: true, RemoteError: false,
		Conflict: true, Closed: true, 77: false,
	} {
		require.Equal(t, want, o.NoEffect(), o)
	}
	c := newClient(t, nil)
	c.hears(status(c.sent(getCmd), 77, 5, ClientRole), "Release(Failed), Complete(6, 5), Free")
	id := c.sent(getCmd)
	c.hears(readDone(id), "OpenData")
	c.want("Release(Failed), Complete(1, 3), Free", c.Opened(nil, c.now, id, false))
}

// TestRMA_28_StatusEndsAWriteThatIsSealed: once its buffer is not read any more.
func TestRMA_28_StatusEndsAWriteThatIsSealed(t *testing.T) {
	c := newClient(t, nil)
	id := c.sent(putCmd)
	c.hears(pull(id), "Seal")
	c.hears(status(id, NACK, Closing, NoRole), "")
	c.want("Complete(2, 4), Free", c.Sealed(nil, c.now, id))

	id = c.sent(putCmd)
	c.hears(pull(id), "Seal")
	c.want("SendData", c.Sealed(nil, c.now, id))
	c.hears(status(id, RemoteAuth, BadData, NoRole), "Complete(1, 3), Free")
}

// TestClientHearsOfWhatIsGone: results that the caller reports after the end of the operation have no effect.
func TestClientHearsOfWhatIsGone(t *testing.T) {
	c := newClient(t, nil)
	id := c.sent(putCmd)
	c.hears(status(id, NACK, QueueFull, NoRole), "Complete(2, 1), Free")
	c.want("Release(Failed)", c.Granted(nil, c.now, id))
	c.want("", c.Expired(nil, c.now, id))
	c.want("", c.Refused(nil, c.now, id))
	c.want("", c.Sealed(nil, c.now, id))
	c.want("", c.Opened(nil, c.now, id, true))
	c.want("", c.Revoked(nil, c.now, id))
	require.True(t, c.Idle())
}

func TestRMA_29_36_SlotsAreBusyUntilTheOutcome(t *testing.T) {
	c := newClient(t, func(cfg *ClientConfig) { cfg.Slots, cfg.Credits = 3, 3 })
	var ids []ID
	for range 3 {
		ids = append(ids, c.sent(putCmd))
	}
	_, _, err := c.Post(nil, c.now, putCmd)
	require.ErrorIs(t, err, ErrNoSlot)
	c.hears(status(ids[1], NACK, QueueFull, NoRole), "Complete(2, 1), Free")
	again := c.sent(putCmd)
	require.Equal(t, ids[1].Slot(), again.Slot())
	_, _, err = c.Post(nil, c.now, putCmd)
	require.ErrorIs(t, err, ErrNoSlot)
}

func TestRMA_30_IDsAreNeverUsedAgain(t *testing.T) {
	c := newClient(t, nil)
	seen := make(map[ID]bool)
	for range 100 {
		id := c.sent(Command{Kind: Open})
		require.False(t, seen[id])
		require.NotZero(t, id)
		seen[id] = true
		c.hears(Message{Type: TypeOpenRep, Op: id}, "Complete(0, 0), Free")
	}
	c.last = maxSequence - 1
	c.sent(Command{Kind: Open})
	_, _, err := c.Post(nil, c.now, putCmd)
	require.ErrorIs(t, err, ErrExhausted)
}

func TestRMA_33_RekeyTakesOneRoundTrip(t *testing.T) {
	c := newClient(t, nil)
	id := c.sent(Command{Kind: Rekey})
	c.hears(Message{Type: TypeRekeyDone, Op: id}, "Complete(0, 0), Free")
	c.hears(status(c.sent(Command{Kind: Rekey}), Conflict, 0, NoRole), "Complete(7, 0), Free")

	s := newServer(t, nil)
	s.hears(Message{Type: TypeRekeyReq, Op: 1}, "Serve")
	s.want("SendAnswer, Free", s.Served(nil, s.now, 1, Verdict{}))
	s.hears(Message{Type: TypeRekeyReq, Op: 2}, "Serve")
	s.want("SendStatus(7, 0), Free", s.Served(nil, s.now, 2, Verdict{Outcome: Conflict}))
}

// TestRMA_37_PullIsFoundBeforeATimeoutIsDeclared: the source is invalid then, and earlier messages
// were received.
func TestRMA_37_PullIsFoundBeforeATimeoutIsDeclared(t *testing.T) {
	c := newClient(t, nil)
	id := c.sent(sourceCmd)
	c.waits(100*ms, "Revoke")
	m := pull(id)
	m.Source = true
	c.hears(m, "")
	c.want("", c.Revoked(nil, c.now, id))
	c.waits(70*ms, "Complete(3, 0), Free")

	c = newClient(t, nil)
	id = c.sent(sourceCmd)
	c.waits(100*ms, "Revoke")
	c.want("Complete(3, 0)", c.Revoked(nil, c.now, id))
	m = pull(id)
	m.Source = true
	c.hears(m, "SendStatus(2, 3), Free")
}

// TestRMA_37_SourceIsRevokedBeforeTheOutcome: the server may still read it.
func TestRMA_37_SourceIsRevokedBeforeTheOutcome(t *testing.T) {
	pulled := func() (*client, ID) {
		c := newClient(t, nil)
		id := c.sent(sourceCmd)
		m := pull(id)
		m.Source = true
		c.hears(m, "")
		return c, id
	}
	done := func(id ID) Message {
		m := writeDone(id)
		m.Invalidated = ClientRole
		return m
	}
	c, id := pulled()
	c.hears(done(id), "Complete(0, 0), Free")

	c, id = pulled()
	c.hears(writeDone(id), "End(4)")

	c, id = pulled()
	c.waits(70*ms, "Revoke")
	c.want("Complete(3, 0), Free", c.Revoked(nil, c.now, id))

	c, id = pulled()
	c.waits(70*ms, "Revoke")
	c.hears(done(id), "Complete(0, 0)")
	c.want("Free", c.Revoked(nil, c.now, id))
}
