package qpconn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/tasks"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// An end is a Conn on a memoryLLP with its surroundings in a queue pair: the receive queue, the completions, the
// sweeper. Each test that uses one runs in a bubble.
type end struct {
	*testing.T
	stops // in calls of the Owner
	llp   *memoryLLP
	conn  *Conn
	tasks tasks.Group

	readers, writers atomic.Int32 // that were started
	alarms           atomic.Int32
	noAlarm          atomic.Bool

	mu        sync.Mutex
	posted    int       // receives
	gaveUp    bool      // the next message that finds no receive fails
	ended     bool      // no receive will be posted
	delivered int       // messages
	expected  []*waiter // each for a message
	statuses  []rdmap.Status
	told      []string // to the Owner, except Received and Sent
}

// inBubble runs f with a connection, and ends the connection. set changes its surroundings.
func inBubble(t *testing.T, set func(e *end, c *Config), f func(e *end)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := newEnd(t, set)
		e.conn.Start()
		synctest.Wait()
		f(e)
		e.conn.Abort(errTest)
		e.isOver()
	})
}

var errTest = errors.New("the test is over")

func newEnd(t *testing.T, set func(e *end, c *Config)) *end {
	e := &end{T: t, llp: newMemoryLLP()}
	c := Config{LLP: e.llp, Owner: e, Tasks: &e.tasks, ReceiveWait: math.MaxInt64}
	c.Stream = e.stream()
	c.Sweeper = NewSweeper(e.alarm)
	if set != nil {
		set(e, &c)
	}
	e.conn = New(c)
	e.llp.conn = &e.conn.mu
	e.conn.reader = counted(&e.readers, e.conn.reader)
	e.conn.writer = counted(&e.writers, e.conn.writer)
	t.Cleanup(func() { // if a test has failed; time stands still when it has returned
		e.conn.Abort(errTest)
		time.Sleep(time.Minute)
	})
	return e
}

func (e *end) stream(extensions ...*rdmap.Extension) *rdmap.Stream {
	return rdmap.New(rdmap.Config{
		Table: stag.NewTable(), Scope: stag.Scope{PD: 1, Stream: 1}, IRD: 4, ORD: 4, SendDepth: 64, Receives: receives{e}, Events: e,
		Extensions: extensions,
	})
}

func counted(n *atomic.Int32, task func()) func() {
	return func() {
		n.Add(1)
		task()
	}
}

func (e *end) alarm(d time.Duration, look func()) error {
	if e.noAlarm.Load() {
		return errors.ErrUnsupported
	}
	e.alarms.Add(1)
	time.AfterFunc(d, look)
	return nil
}

// isOver waits for the end and checks what must hold after every end.
func (e *end) isOver() {
	e.Helper()
	synctest.Wait()
	require.Equal(e, Ended, e.conn.Stage(), "the connection has ended: %v", e.state())
	e.tasks.Wait()
	synctest.Wait()
	told := e.heard()
	require.Equal(e, []string{"Flush", "Ended"}, told[max(0, len(told)-2):], "the last that the Owner is told")
	require.Equal(e, 1, count(told, "Flush"))
	require.Equal(e, 1, count(told, "Ended"))
	posted, completed := e.conn.stream.Counts()
	require.Equal(e, posted, completed, "all work is completed")
	e.llp.mu.Lock()
	defer e.llp.mu.Unlock()
	require.Empty(e, e.llp.faults)
	require.Nil(e, e.llp.ready, "nothing is armed")
	require.Len(e, e.llp.ends, 1, "the LLP is closed once")
}

func count(all []string, what string) (n int) {
	for _, s := range all {
		if s == what {
			n++
		}
	}
	return n
}

func (e *end) state() string {
	e.conn.mu.Lock()
	defer e.conn.mu.Unlock()
	return fmt.Sprintf("%+v", e.conn.arbiter)
}

// becomes waits until all goroutines sleep, and checks where the right to receive is.
func (e *end) becomes(want rxState, expectation string) {
	e.Helper()
	synctest.Wait()
	e.conn.mu.Lock()
	defer e.conn.mu.Unlock()
	require.Equal(e, want, e.conn.arbiter.rx, expectation)
}

// holds requires that w, or if it is nil the reader, has the right to receive and waits for input.
func (e *end) holds(w *waiter, expectation string) {
	e.Helper()
	e.becomes(rxParked, expectation)
	e.conn.mu.Lock()
	defer e.conn.mu.Unlock()
	if w == nil {
		require.True(e, e.conn.arbiter.readerHolds(), expectation)
		return
	}
	require.True(e, e.conn.arbiter.holds(w), expectation)
}

func (e *end) sends(want txState, expectation string) {
	e.Helper()
	synctest.Wait()
	e.conn.mu.Lock()
	defer e.conn.mu.Unlock()
	require.Equal(e, want, e.conn.arbiter.tx, expectation)
}

// heard returns what the Owner was told.
func (e *end) heard() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.told)
}

func (e *end) tell(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, what)
}

// postReceives posts n receives.
func (e *end) postReceives(n int) {
	e.mu.Lock()
	e.posted += n
	e.mu.Unlock()
	e.conn.Resume()
}

// queues queues n requests, the last of which completes for w, and posts them.
func (e *end) queues(kind rdmap.Kind, n int, w *waiter) {
	e.Helper()
	posted, err := e.conn.stream.Post(n, func(i int, r *rdmap.Request) error {
		if r.Kind = kind; i == n-1 && w != nil {
			r.Tag = w
		}
		return nil
	})
	require.NoError(e, err)
	require.Equal(e, n, posted)
	e.conn.Post()
}

// waits starts a goroutine that waits for the next message that has no other waiter.
func (e *end) waits(ctx context.Context) *waiter {
	return e.waitsWith(ctx, Plan{Sleep: transport.Park})
}

func (e *end) waitsWith(ctx context.Context, p Plan) *waiter {
	w := newWaiter(e)
	e.mu.Lock()
	e.expected = append(e.expected, w)
	e.mu.Unlock()
	w.starts(ctx, p)
	return w
}
