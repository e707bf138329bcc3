package op

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRMA_8_WrongKeyIsToldAtOnce(t *testing.T) {
	s := newServer(t, nil)
	m := readReq(1)
	m.Verdict = Judge(NoKey, 1000, 0, 100)
	s.hears(m, "Audit(64), SendStatus(1, 2) Invalidate")
	m = writeReq(2)
	m.Verdict = Judge(OldKey, 1000, 0, 100)
	s.hears(m, "Audit(64), SendStatus(1, 1)")
	m.Op, m.Source = 3, true
	s.hears(m, "Audit(64), SendStatus(1, 1) Invalidate")
	require.True(t, s.Idle())
	s.hears(readReq(4), "Serve")
	s.want("SendAnswer Invalidate, Free", s.Served(nil, s.now, readReq(4).Op, Verdict{}))
	s.hears(readReq(5), "Serve")
	s.want("SendStatus(6, 0) Invalidate, Free", s.Served(nil, s.now, readReq(5).Op, Verdict{Outcome: RemoteError}))
	require.Equal(t, ServerStats{AuthFailures: 3}, s.Stats(), "none of them is a NACK")
}

func TestRMA_8_OpenThatIsRefusedIsAudited(t *testing.T) {
	s := newServer(t, nil)
	s.hears(Message{Type: TypeOpenReq, Op: 1}, "Serve")
	s.want("Audit(64), SendStatus(1, 2), Free", s.Served(nil, s.now, 1, Verdict{RemoteAuth, BadKey}))
}

func TestRMA_9_10_Judge(t *testing.T) {
	const top = ^uint64(0)
	for _, c := range []struct {
		key       KeyState
		size, off uint64
		n         uint32
		want      Verdict
	}{
		{NoKey, 10, 0, 10, Verdict{RemoteAuth, BadKey}},
		{NoKey, 10, 11, 10, Verdict{RemoteAuth, BadKey}},
		{OldKey, 10, 0, 10, Verdict{RemoteAuth, StaleEpoch}},
		{OldKey, 10, 11, 0, Verdict{RemoteAuth, StaleEpoch}},
		{RightKey, 10, 0, 10, Verdict{}},
		{RightKey, 10, 10, 0, Verdict{}},
		{RightKey, 10, 1, 10, Verdict{Outcome: Bounds}},
		{RightKey, 10, 11, 0, Verdict{Outcome: Bounds}},
		{RightKey, 10, top, 11, Verdict{Outcome: Bounds}},
		{RightKey, top, top, 0, Verdict{}},
		{RightKey, top, top - 1, 2, Verdict{Outcome: Bounds}},
	} {
		require.Equal(t, c.want, Judge(c.key, c.size, c.off, c.n), c)
	}
}

func TestRMA_16_PullWaitsForTheWindow(t *testing.T) {
	s := newServer(t, nil)
	m := writeReq(1)
	s.hears(m, "Enqueue(116)")
	s.want("SendPull", s.Granted(nil, s.now, m.Op))
	s.hears(data(m.Op), "OpenData")
	s.want("Copy", s.Opened(nil, s.now, m.Op, true))
	s.want("Release(OK), SendAnswer, Free", s.Copied(nil, s.now, m.Op, CopyDone))
	s.want("Release(Failed)", s.Granted(nil, s.now, m.Op))
	require.True(t, s.Idle())
}

func TestRMA_16_WindowThatDoesNotGrant(t *testing.T) {
	s := newServer(t, nil)
	s.hears(writeReq(1), "Enqueue(116)")
	s.waits(5*ms, "Cancel, SendStatus(2, 2), Free")
	s.hears(writeReq(2), "Enqueue(116)")
	s.want("SendStatus(2, 2), Free", s.Expired(nil, s.now, writeReq(2).Op))
	s.hears(writeReq(3), "Enqueue(116)")
	s.want("SendStatus(2, 1), Free", s.Refused(nil, s.now, writeReq(3).Op))
	id := s.pulled(writeReq(4))
	s.want("", s.Refused(nil, s.now, id))
	bulk := writeReq(5)
	bulk.Class = Bulk
	s.hears(bulk, "Enqueue(116)")
	s.waits(40*ms, "Cancel, SendStatus(2, 2), Free")
	require.Equal(t, uint64(4), s.Stats().Nacks)
}

func TestRMA_17_QueueIsBounded(t *testing.T) {
	s := newServer(t, nil)
	s.hears(writeReq(1), "Enqueue(116)")
	s.hears(readReq(2), "Serve")
	s.hears(readReq(3), "SendStatus(2, 1) Invalidate")
	s.want("SendPull", s.Granted(nil, s.now, writeReq(1).Op))
	s.hears(writeReq(3), "Enqueue(116)")
	s.want("SendAnswer Invalidate, Free", s.Served(nil, s.now, readReq(2).Op, Verdict{}))
	s.hears(writeReq(4), "Enqueue(116)")
	require.Equal(t, uint64(1), s.Stats().Nacks)
}

func TestRMA_20_CopyOnlyBeforeTs(t *testing.T) {
	s := newServer(t, nil)
	id := s.pulled(writeReq(1))
	s.sleep(50*ms - 1)
	s.hears(data(id), "OpenData")
	actions := s.Opened(nil, s.now, id, true)
	s.want("Copy", actions)
	require.Equal(t, epoch.Add(50*ms), actions[0].Before)
	s.sleep(1)
	s.want("Release(Timeout), Free", s.Copied(nil, s.now, id, CopyLate))

	// The blob was opened too late.
	id = s.pulled(writeReq(2))
	s.sleep(49 * ms)
	s.hears(data(id), "OpenData")
	s.sleep(ms)
	s.want("Release(Timeout), Free", s.Opened(nil, s.now, id, true))

	// It came too late.
	id = s.pulled(writeReq(3))
	s.sleep(50 * ms)
	s.hears(data(id), "Hold, Release(Timeout), Free")
	require.Equal(t, ServerStats{Expired: 3, Late: 3}, s.Stats())
	require.True(t, s.Idle())
}

func TestRMA_20_LateCommitIsAudited(t *testing.T) {
	s := newServer(t, nil)
	for i, c := range []struct {
		how   CopyResult
		after int
		want  string
	}{
		{CopyDone, 69, "Release(OK), SendAnswer, Free"},
		{CopyDone, 70, "Audit(65), Release(OK), SendAnswer, Free"},
		{CopyFailed, 70, "Audit(65), Release(OK), SendStatus(6, 0), Free"},
		{CopyClosing, 70, "Release(OK), SendStatus(2, 4), Free"},
	} {
		id := s.pulled(writeReq(uint64(1 + i)))
		s.hears(data(id), "OpenData")
		actions := s.Opened(nil, s.now, id, true)
		s.want("Copy", actions)
		s.now = actions[0].Before.Add(-50*ms + time.Duration(c.after)*ms)
		s.want(c.want, s.Copied(nil, s.now, id, c.how))
	}
	require.Equal(t, uint64(2), s.Stats().LateCommits)
}

func TestRMA_20_BadDataAreRefused(t *testing.T) {
	s := newServer(t, nil)
	id := s.pulled(writeReq(1))
	s.hears(data(id), "OpenData")
	s.want("Audit(64), Release(Failed), SendStatus(1, 3), Free", s.Opened(nil, s.now, id, false))
	require.Equal(t, uint64(1), s.Stats().AuthFailures)
}

func TestRMA_24_SinkOfTheServerLingers(t *testing.T) {
	s := newServer(t, nil)
	id := s.pulled(writeReq(1))
	s.waits(50*ms, "Hold")
	s.waits(30*ms, "Revoke, Release(Timeout)")
	s.hears(data(id), "")
	s.hears(status(id, NACK, TooLate, ServerRole), "")
	s.want("Free", s.Revoked(nil, s.now, id))
	require.Equal(t, ServerStats{Expired: 1, Late: 2}, s.Stats())
	s.hears(data(id), "End(8)")
}

// TestRMA_24_SourceThatIsReadForTooLong: the RDMA Read of a source cannot be cancelled, so the connection ends, once.
func TestRMA_24_SourceThatIsReadForTooLong(t *testing.T) {
	s := newServer(t, nil)
	m := writeReq(1)
	m.Source = true
	id := s.pulled(m)
	s.waits(50*ms, "Hold")
	s.waits(30*ms, "Revoke")
	s.sleep(time.Second)
	s.want("", s.Tick(nil, s.now))
	s.want("End(10)", s.Revoked(nil, s.now, id))
	s.want("Release(Failed), Free", s.Lost(nil, s.now))

	s = newServer(t, nil)
	id = s.pulled(m)
	s.hears(status(id, NACK, TooLate, NoRole), "")
	s.waits(30*ms, "Revoke")
	s.want("End(10)", s.Revoked(nil, s.now, id))
	s.want("Release(Timeout), Free", s.Pulled(nil, s.now, id, true))
	require.True(t, s.Idle())
}

// TestRMA_24_SourceThatWasReadInTime: it is reported late, because the caller was busy. The connection survives.
func TestRMA_24_SourceThatWasReadInTime(t *testing.T) {
	s := newServer(t, nil)
	m := writeReq(1)
	m.Source = true
	id := s.pulled(m)
	s.waits(50*ms, "Hold")
	s.waits(30*ms, "Revoke")
	s.want("Release(Timeout), Free", s.Pulled(nil, s.now, id, true))
	s.want("", s.Revoked(nil, s.now, id))
	require.True(t, s.Idle())
	s.pulled(writeReq(2))
}

func TestRMA_25_ServerWithoutLinger(t *testing.T) {
	s := newServer(t, func(cfg *ServerConfig) { cfg.Linger = 0 })
	id := s.pulled(writeReq(1))
	s.waits(50*ms, "Hold, Revoke, Release(Timeout)")
	s.want("Free", s.Revoked(nil, s.now, id))
}

func TestRMA_22_ClientRefusesThePull(t *testing.T) {
	s := newServer(t, nil)
	id := s.pulled(writeReq(1))
	s.hears(status(id, NACK, TooLate, ServerRole), "Release(NACK), Free")
	id = s.pulled(writeReq(2))
	s.waits(50*ms, "Hold")
	s.hears(status(id, NACK, TooLate, ServerRole), "Release(NACK), Free")
	s.hears(status(id, NACK, TooLate, NoRole), "")
	require.Equal(t, ServerStats{Expired: 1, Late: 1}, s.Stats())
	id = s.pulled(writeReq(3))
	s.hears(status(id, NACK, TooLate, NoRole), "End(4)")
}

func TestRMA_37_ServerReadsTheSource(t *testing.T) {
	s := newServer(t, nil)
	m := writeReq(1)
	m.Source = true
	id := s.pulled(m)
	s.want("Copy", s.Pulled(nil, s.now, id, true))
	s.want("Release(OK), SendAnswer Invalidate, Free", s.Copied(nil, s.now, id, CopyDone))

	m.Op = 2
	id = s.pulled(m)
	s.want("Release(Failed), Free", s.Pulled(nil, s.now, id, false))

	m.Op = 3
	id = s.pulled(m)
	s.waits(50*ms, "Hold")
	s.want("Release(Timeout), Free", s.Pulled(nil, s.now, id, true))
	require.Equal(t, ServerStats{Expired: 1, Late: 1}, s.Stats())

	m.Op = 4
	id = s.pulled(m)
	s.hears(status(id, NACK, TooLate, NoRole), "")
	s.want("Release(Timeout), Free", s.Pulled(nil, s.now, id, true))

	m.Op = 5
	id = s.pulled(m)
	s.hears(data(id), "End(4)")
}

func TestRMA_11_ReadIsNotBegunAfterItsTTL(t *testing.T) {
	s := newServer(t, nil)
	id := readReq(1).Op
	s.hears(readReq(1), "Serve")
	s.want("SendAnswer Invalidate, Free", s.Served(nil, s.now.Add(100*ms-1), id, Verdict{}))
	s.now = s.now.Add(100 * ms)
	s.hears(readReq(2), "Serve")
	s.want("SendStatus(2, 3) Invalidate, Free", s.Served(nil, s.now.Add(100*ms), readReq(2).Op, Verdict{}))
}

func TestRMA_42_TooManyFailuresEndTheConnection(t *testing.T) {
	s := newServer(t, nil)
	m := readReq(1)
	m.Verdict = Verdict{RemoteAuth, BadKey}
	for range 1000 { // as many as are tolerated
		s.sleep(10 * ms)
		s.hears(m, "Audit(64), SendStatus(1, 2) Invalidate")
	}
	m.Had = true
	for range 1000 { // the client does not guess
		s.hears(m, "Audit(64), SendStatus(1, 2) Invalidate")
	}
	m.Had = false
	for range 99 {
		s.hears(m, "Audit(64), SendStatus(1, 2) Invalidate")
	}
	s.hears(m, "Audit(64), SendStatus(1, 2) Invalidate, End(9)")
	require.EqualValues(t, 2100, s.Stats().AuthFailures)
	s.hears(m, "")
}

func TestRMA_42_RecordsAreBounded(t *testing.T) {
	s := newServer(t, func(cfg *ServerConfig) { cfg.Queue, cfg.Linger = 10, time.Second })
	for i := range uint64(4) {
		s.pulled(writeReq(1 + i))
		s.waits(50*ms, "Hold")
	}
	s.hears(writeReq(9), "SendStatus(2, 1)")
}

func TestRMA_5_42_RequestsBeyondTheRulesEndTheConnection(t *testing.T) {
	four := func(change func(*Message)) Message {
		m := writeReq(4)
		change(&m)
		return m
	}
	for _, c := range []struct {
		name string
		m    Message
		want Why
	}{
		{"more than the credits", four(func(*Message) {}), OverCredit},
		{"a wrong key, beyond the credits", four(func(m *Message) { m.Verdict = Verdict{RemoteAuth, BadKey} }), OverCredit},
		{"too long", four(func(m *Message) { m.Op, m.Length = 5, 4097 }), OverMaxOp},
		{"the same ID", writeReq(1), SameID},
		{"one that invalidates", four(func(m *Message) { m.Op, m.Invalidated = 5, ServerRole }), Contradiction},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, func(cfg *ServerConfig) { cfg.Queue = 10 })
			for i := range uint64(3) {
				if c.m.Op != 5 || i == 0 {
					s.pulled(writeReq(1 + i))
				}
			}
			actions := s.Receive(nil, s.now, &c.m)
			require.Equal(t, []Action{{Do: End, Op: c.m.Op, Record: NoRecord, Why: c.want}}, actions)
		})
	}
}

// TestRMA_5_ExpiredRequestsAreNotCounted: the client may have given up, and send new requests.
func TestRMA_5_ExpiredRequestsAreNotCounted(t *testing.T) {
	s := newServer(t, func(cfg *ServerConfig) { cfg.Credits, cfg.Records = 1, 2 })
	id := s.pulled(writeReq(1))
	s.hears(data(id), "OpenData")
	s.want("Copy", s.Opened(nil, s.now, id, true))
	s.sleep(50 * ms)
	s.hears(writeReq(2), "Enqueue(116)")
	s.want("Release(OK), SendAnswer, Free", s.Copied(nil, s.now, id, CopyDone))
}

func TestRMA_14_DataOutOfTurnEndTheConnection(t *testing.T) {
	s := newServer(t, nil)
	s.hears(data(1), "End(8)")

	s.hears(writeReq(1), "")

	s = newServer(t, nil)
	s.hears(writeReq(1), "Enqueue(116)")
	s.hears(data(writeReq(1).Op), "End(8)")

	s = newServer(t, nil)
	s.hears(readReq(1), "Serve")
	s.hears(data(readReq(1).Op), "End(4)")

	s = newServer(t, nil)
	m := data(s.pulled(writeReq(1)))
	m.Length--
	s.hears(m, "End(4)")

	s = newServer(t, nil)
	s.hears(writeReq(1), "Enqueue(116)")
	s.hears(status(writeReq(1).Op, NACK, TooLate, NoRole), "End(3)")

	s = newServer(t, nil)
	s.want("End(3)", s.Receive(nil, s.now, &Message{Type: TypeHello}))
}

func TestRMA_40_ClosedRegion(t *testing.T) {
	s := newServer(t, nil)
	s.hears(readReq(1), "Serve")
	s.want("SendStatus(2, 4) Invalidate, Free", s.Served(nil, s.now, readReq(1).Op, Verdict{NACK, Closing}))
	id := s.pulled(writeReq(2))
	s.hears(data(id), "OpenData")
	s.want("Copy", s.Opened(nil, s.now, id, true))
	s.want("Release(OK), SendStatus(2, 4), Free", s.Copied(nil, s.now, id, CopyClosing))
}

func TestRMA_28_CloseRefusesWhatWaits(t *testing.T) {
	s := newServer(t, nil)
	s.hears(writeReq(1), "Enqueue(116)")
	s.hears(readReq(2), "Serve")
	s.want("Cancel, SendStatus(2, 4), Free", s.Close(nil, s.now))
	s.hears(readReq(3), "SendStatus(2, 4) Invalidate")
	s.want("SendAnswer Invalidate, Free", s.Served(nil, s.now, readReq(2).Op, Verdict{}))
	s.want("", s.Close(nil, s.now))
	s.want("", s.Lost(nil, s.now))
	s.want("", s.Close(nil, s.now))
}

// TestRMA_19_LostServer: outstanding work is waited for, and nothing is answered.
func TestRMA_19_LostServer(t *testing.T) {
	s := newServer(t, func(cfg *ServerConfig) { cfg.Credits, cfg.Records, cfg.Queue = 5, 6, 5 })
	s.pulled(writeReq(6))
	s.waits(50*ms, "Hold")
	pulled, opening, copying := s.pulled(writeReq(1)), s.pulled(writeReq(2)), s.pulled(writeReq(3))
	s.hears(data(opening), "OpenData")
	s.hears(data(copying), "OpenData")
	s.want("Copy", s.Opened(nil, s.now, copying, true))
	s.hears(writeReq(4), "Enqueue(116)")
	s.hears(readReq(5), "Serve")
	s.want("Release(Failed), Free, Release(Failed), Free, Cancel, Free", s.Lost(nil, s.now))
	s.want("", s.Lost(nil, s.now))
	s.want("", s.Pulled(nil, s.now, pulled, true))
	s.want("Release(Timeout), Free", s.Opened(nil, s.now, opening, true))
	s.want("Release(OK), Free", s.Copied(nil, s.now, copying, CopyDone))
	s.want("Free", s.Served(nil, s.now, readReq(5).Op, Verdict{}))
	s.hears(readReq(7), "")
	require.True(t, s.Idle())
}

// TestServerHearsOfWhatIsGone: results that the caller reports after the end of the operation have no effect.
func TestServerHearsOfWhatIsGone(t *testing.T) {
	s := newServer(t, nil)
	s.hears(writeReq(1), "Enqueue(116)")
	s.waits(5*ms, "Cancel, SendStatus(2, 2), Free")
	id := writeReq(1).Op
	s.want("Release(Failed)", s.Granted(nil, s.now, id))
	s.want("", s.Expired(nil, s.now, id))
	s.want("", s.Refused(nil, s.now, id))
	s.want("", s.Served(nil, s.now, id, Verdict{}))
	s.want("", s.Pulled(nil, s.now, id, true))
	s.want("", s.Opened(nil, s.now, id, true))
	s.want("", s.Copied(nil, s.now, id, CopyDone))
	s.want("", s.Revoked(nil, s.now, id))
	require.True(t, s.Idle())
	require.Equal(t, uint64(1), s.Stats().Nacks)
}
