package op

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRMA_28_DispatchTimeoutHasSentNothing: whether the window or a credit was missing.
func TestRMA_28_DispatchTimeoutHasSentNothing(t *testing.T) {
	c := newClient(t, func(cfg *ClientConfig) { cfg.Credits = 1 })
	waits := c.posts(getCmd, "Enqueue(116)")
	c.sleep(2 * ms)
	c.posts(putCmd, "")
	c.waits(3*ms, "Cancel, Complete(4, 0), Free, SendRequest")
	c.posts(putCmd, "")
	c.waits(5*ms, "Complete(4, 0)")
	c.want("Release(Failed)", c.Granted(nil, c.now, waits))
	require.Equal(t, ClientStats{Outcomes: [Outcomes]uint64{DispatchTimeout: 2}}, c.Stats())
}

func TestRMA_28_WindowThatRefuses(t *testing.T) {
	c := newClient(t, nil)
	c.want("Complete(4, 0), Free", c.Expired(nil, c.now, c.posts(getCmd, "Enqueue(116)")))
	c.want("Complete(4, 0), Free", c.Refused(nil, c.now, c.posts(getCmd, "Enqueue(116)")))
	c.want("", c.Refused(nil, c.now, c.sent(getCmd)))
	require.Empty(t, c.Expired(nil, c.now, 0))
}

func TestRMA_26_DispatchTimeoutsAreOfTheirClass(t *testing.T) {
	bulk := Command{Kind: Write, Length: 100, Class: Bulk}
	c := newClient(t, func(cfg *ClientConfig) { cfg.Credits = 1 })
	c.sent(putCmd)
	c.posts(bulk, "")
	c.posts(putCmd, "")
	c.waits(5*ms, "Complete(4, 0)")
	c.waits(35*ms, "Complete(4, 0)")
	c.waits(60*ms, "Complete(3, 0)")
	_, ok := c.Deadline()
	require.False(t, ok)
}

// TestRMA_5_CreditsBoundWhatIsUnanswered: operations without a credit wait in order.
func TestRMA_5_CreditsBoundWhatIsUnanswered(t *testing.T) {
	c := newClient(t, func(cfg *ClientConfig) { cfg.Dispatch = [2]time.Duration{} })
	first, second := c.sent(Command{Kind: Open}), c.sent(putCmd)
	third := c.posts(putCmd, "")
	c.posts(getCmd, "")
	c.hears(Message{Type: TypeOpenRep, Op: first}, "Complete(0, 0), Free, SendRequest")
	c.hears(pull(third), "Seal")
	c.hears(status(second, NACK, QueueFull, NoRole), "Complete(2, 1), Free, Enqueue(116)")
}

// TestRMA_5_LateOperationKeepsItsCredit: the server counts it until it has answered.
func TestRMA_5_LateOperationKeepsItsCredit(t *testing.T) {
	c := newClient(t, func(cfg *ClientConfig) { cfg.Credits, cfg.Dispatch = 1, [2]time.Duration{} })
	first := c.sent(putCmd)
	c.waits(100*ms, "Complete(3, 0)")
	c.posts(putCmd, "")
	c.hears(status(first, NACK, NoWindow, NoRole), "Free, SendRequest")
}

func TestRMA_26_OperationHasATimeoutOfItsOwn(t *testing.T) {
	c := newClient(t, nil)
	c.sent(Command{Kind: Open, Timeout: 7 * ms})
	c.waits(7*ms, "Complete(3, 0)")
}

// TestRMA_29_CloseEndsWhatHasNotBegun: other operations continue.
func TestRMA_29_CloseEndsWhatHasNotBegun(t *testing.T) {
	c := newClient(t, nil)
	id := c.sent(putCmd)
	c.posts(getCmd, "Enqueue(116)")
	c.posts(putCmd, "")
	c.want("Complete(8, 0), Cancel, Complete(8, 0), Free", c.Close(nil, c.now))
	_, _, err := c.Post(nil, c.now, putCmd)
	require.ErrorIs(t, err, ErrClosed)
	c.hears(pull(id), "Seal")
}

func TestRMA_44_ClientAndServerAllocateNothing(t *testing.T) {
	c, s := NewClient(clientConfig(), epoch), NewServer(serverConfig(), epoch)
	actions, now := make([]Action, 0, 16), epoch
	var done, answer, asks Message
	require.Zero(t, testing.AllocsPerRun(100, func() {
		now = now.Add(time.Hour)
		var id ID
		actions, id, _ = c.Post(actions[:0], now, getCmd)
		actions = c.Granted(actions, now, id)
		done = readDone(id)
		actions = c.Receive(actions, now, &done)
		actions = c.Opened(actions, now, id, true)
		actions, id, _ = c.Post(actions, now, putCmd)
		actions = c.Tick(actions, now.Add(time.Minute))
		asks = Message{Type: TypeWriteReq, Op: id, Length: 100}
		actions = s.Receive(actions[:0], now, &asks)
		actions = s.Granted(actions, now, id)
		answer = data(id)
		actions = s.Receive(actions, now, &answer)
		actions = s.Opened(actions, now, id, true)
		actions = s.Copied(actions, now, id, CopyDone)
		answer = status(id, NACK, QueueFull, NoRole)
		actions = c.Receive(actions[:0], now.Add(time.Minute), &answer)
	}))
	require.True(t, c.Idle() && s.Idle())
}

// TestRMA_17_NackSaysWhenToTryAgain: for lack of room, when all writes that wait now have had their turn or were
// refused. It says nothing if waiting does not help.
func TestRMA_17_NackSaysWhenToTryAgain(t *testing.T) {
	status := func(actions []Action) Action {
		for _, a := range actions {
			if a.Do == SendStatus {
				return a
			}
		}
		require.Fail(t, "no STATUS", "%v", actions)
		return Action{}
	}
	for _, c := range []struct {
		name   string
		change func(*ServerConfig)
		class  Class
		want   time.Duration
	}{
		{"latency", nil, Latency, 5 * ms},
		{"bulk", nil, Bulk, 40 * ms},
		{"without a limit", func(c *ServerConfig) { c.Dispatch = [2]time.Duration{} }, Bulk, 50 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, c.change)
			m := writeReq(1)
			m.Class = c.class
			s.Receive(nil, s.now, &m)
			full := status(s.Refused(nil, s.now, m.Op))
			require.Equal(t, QueueFull, full.Reason)
			require.Equal(t, c.want, full.RetryAfter)
			s.Receive(nil, s.now, &m)
			late := status(s.Expired(nil, s.now, m.Op))
			require.Equal(t, NoWindow, late.Reason)
			require.Equal(t, c.want, late.RetryAfter)
			for i := range 2 {
				m.Op = ID(2 + i)
				s.Receive(nil, s.now, &m)
			}
			m.Op = 4
			require.Equal(t, c.want, status(s.Receive(nil, s.now, &m)).RetryAfter, "a request that has no record")
			s.Close(nil, s.now)
			m.Op = 5
			require.Zero(t, status(s.Receive(nil, s.now, &m)).RetryAfter, "the server closes")
			m.Op, m.Verdict = 6, Verdict{RemoteAuth, BadKey}
			require.Zero(t, status(s.Receive(nil, s.now, &m)).RetryAfter)
		})
	}
}
