//go:build linux && !purego

package iwarp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testproc"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// descriptors counts those that are open.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(all) - 1 // the one that reads the directory
}

// noDescriptors takes all descriptors that the process may have from now on, but for
// spare ones. more gives that many back.
func noDescriptors(t *testing.T, spare int) (more func(n int)) {
	t.Helper()
	var l unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &l))
	l.Cur = uint64(descriptors(t) + 100)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &l))
	var taken []int
	for {
		fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0)
		if err == nil {
			taken = append(taken, fd)
			continue
		}
		require.Equal(t, unix.EMFILE, err)
		if allOpen(int(l.Cur)) {
			break
		}
	}
	more = func(n int) {
		for _, fd := range taken[len(taken)-n:] {
			require.NoError(t, unix.Close(fd))
		}
		taken = taken[:len(taken)-n]
	}
	more(spare)
	return more
}

// allOpen reports whether each descriptor below n is open. One that accept4 holds for a moment is not: it comes back if no connection is
// there to be accepted.
func allOpen(n int) bool {
	for fd := range n {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			return false
		}
	}
	return true
}

// dialsWithTheLast takes the last descriptor for a connection. It may have to try again: accept4 holds one for a moment, also where no
// connection is there to be accepted.
func dialsWithTheLast(t *testing.T, l *iwarp.Listener) (c net.Conn) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		if c, err = net.Dial("tcp", l.Addr().String()); err != nil {
			require.ErrorIs(t, err, syscall.EMFILE)
		}
		return err == nil
	}, wiretest.Patience, time.Millisecond)
	return c
}

// manyConns is many connections. At the client's end of each a goroutine can wait.
type manyConns struct {
	client, server *side
	l              *iwarp.Listener
	clients        []*iwarp.QP
	servers        []*iwarp.QP
	got            chan string // what the waiters have received
	left           sync.WaitGroup
}

func newManyConns(t *testing.T, n int) *manyConns {
	c := &manyConns{client: newSide(t, &iwarp.Config{CloseTimeout: time.Minute}), server: newSide(t, nil), got: make(chan string, n)}
	ctx := testContext(t)
	var err error
	c.l, err = c.server.rnic.Listen(ctx, "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	for range n {
		c.adds(ctx)
	}
	return c
}

func (c *manyConns) adds(ctx context.Context) {
	t := c.client.T
	accepted := make(chan *iwarp.QP, 1)
	go func() {
		defer close(accepted)
		if cr, err := c.l.Accept(ctx); err == nil {
			if qp, err := cr.Accept(ctx, &iwarp.QPConfig{PD: c.server.pd}); err == nil {
				accepted <- qp
			}
		}
	}()
	qp, err := c.client.rnic.Dial(ctx, "tcp", c.l.Addr().String(), &iwarp.QPConfig{PD: c.client.pd})
	require.NoError(t, err)
	c.clients, c.servers = append(c.clients, qp), append(c.servers, <-accepted)
}

// waits begins to wait at the client's end of those that were added.
func (c *manyConns) waits() {
	for _, qp := range c.clients {
		buf, mr := c.client.register(8, stag.LocalWrite, nil)
		c.left.Go(func() {
			for {
				n, err := qp.Recv(context.Background(), mr.Slice(0, 8))
				if err != nil {
					return
				}
				c.got <- string(buf[:n])
			}
		})
	}
}

// TestNoDescriptorIsKept: of sockets, of waiters, and of RNICs.
func TestNoDescriptorIsKept(t *testing.T) {
	if !testproc.Alone(t) {
		return
	}
	round := func() {
		c := newManyConns(t, 50)
		c.waits()
		_, mr := c.server.register(8, stag.LocalWrite, nil)
		for range 20 { // they are told again and again
			for _, qp := range c.servers {
				require.NoError(t, qp.Send(testContext(t), mr.Slice(0, 8)))
			}
			for range c.servers {
				<-c.got
			}
		}
		require.NoError(t, c.client.rnic.Close())
		require.NoError(t, c.server.rnic.Close())
		c.left.Wait()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close()) // what the runtime keeps is there now
	before := descriptors(t)
	round()
	require.Equal(t, before, descriptors(t), "nothing is left of closed RNICs")
}

// TestWaiterTakesNoDescriptor beside that of its connection.
func TestWaiterTakesNoDescriptor(t *testing.T) {
	if !testproc.Alone(t) {
		return
	}
	const more = 200
	c := newManyConns(t, 2)
	c.got = make(chan string, 2+more)
	before := descriptors(t)
	for range more {
		c.adds(testContext(t))
	}
	c.waits()
	_, mr := c.server.register(8, stag.LocalWrite, nil)
	for range 3 {
		for _, qp := range c.servers {
			require.NoError(t, qp.Send(testContext(t), mr.Slice(0, 8)))
		}
		for range c.servers {
			<-c.got
		}
	}
	const busiest = 64 // have an epoll set
	require.LessOrEqual(t, descriptors(t)-before, 2*more+busiest, "both ends of a connection have one each")
	require.NoError(t, c.client.rnic.Close())
	c.left.Wait()
}

// TestDescriptorsRunOut: new connections are refused with the reason, and existing ones go
// on as before.
func TestDescriptorsRunOut(t *testing.T) {
	if !testproc.Alone(t) {
		return
	}
	const many = 600
	var log bytes.Buffer
	var logged sync.Mutex
	c := newManyConns(t, 0)
	require.NoError(t, c.l.Close())
	c.server = newSide(t, &iwarp.Config{CloseTimeout: time.Minute, Logger: slog.New(slog.NewTextHandler(&locked{&logged, &log}, nil))})
	ctx := testContext(t)
	var err error
	c.l, err = c.server.rnic.Listen(ctx, "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	for range many {
		c.adds(ctx)
	}
	c.got = make(chan string, many)
	silent, err := net.Dial("tcp", c.l.Addr().String()) // its Request never comes
	require.NoError(t, err)
	defer silent.Close()

	noDescriptors(t, 0)
	c.waits()
	_, err = c.client.rnic.Dial(ctx, "tcp", c.l.Addr().String(), &iwarp.QPConfig{PD: c.client.pd})
	require.ErrorIs(t, err, transport.ErrExhausted)
	require.ErrorIs(t, err, syscall.EMFILE)
	require.ErrorContains(t, err, "no file descriptor left (RLIMIT_NOFILE is ")
	_, err = iwarp.Open(nil)
	require.ErrorIs(t, err, transport.ErrExhausted)
	_, err = c.server.rnic.Listen(ctx, "tcp", "127.0.0.1:0", nil)
	require.ErrorIs(t, err, transport.ErrExhausted)

	becomesQuiet(t, "no waiter looks again and again")
	_, mr := c.server.register(8, stag.LocalWrite, nil)
	for _, qp := range c.servers {
		require.NoError(t, qp.Send(ctx, mr.Slice(0, 8)))
	}
	for range c.servers {
		<-c.got
	}
	start := time.Now()
	require.NoError(t, c.client.rnic.Close())
	require.NoError(t, c.server.rnic.Close())
	require.Less(t, time.Since(start), 30*time.Second, "all end as soon as ever")
	c.left.Wait()
}

type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (l *locked) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.w.(*bytes.Buffer).String(), what)
}

// TestListenerWithoutDescriptors reports once what is wrong, does not spin, and goes on
// when descriptors are free again.
func TestListenerWithoutDescriptors(t *testing.T) {
	if !testproc.Alone(t) {
		return
	}
	log := &locked{new(sync.Mutex), new(bytes.Buffer)}
	s := newSide(t, &iwarp.Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
	l, err := s.rnic.Listen(testContext(t), "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	more := noDescriptors(t, 1) // for a peer
	peer := dialsWithTheLast(t, l)
	ctx, cancel := context.WithCancel(testContext(t))
	waits := make(chan error, 1)
	go func() {
		_, err := l.Accept(ctx)
		waits <- err
	}()
	require.Eventually(t, func() bool { return log.count("no connection can be taken") > 0 }, wiretest.Patience, time.Millisecond)
	becomesQuiet(t, "the listener does not spin")
	cancel()
	err = <-waits
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, transport.ErrExhausted)
	require.ErrorContains(t, err, "no file descriptor left")
	require.Equal(t, 1, log.count("no connection can be taken"), "it is told once")

	_, err = peer.Write([]byte(wiretest.RequestKey + "\x40\x01\x00\x00"))
	require.NoError(t, err)
	more(5)
	cr, err := l.Accept(testContext(t))
	require.NoError(t, err, "it goes on")
	require.NoError(t, cr.Reject(nil))
	next, err := net.Dial("tcp", l.Addr().String()) // the first may have been taken before the listener was out of them
	require.NoError(t, err)
	require.Eventually(t, func() bool { return log.count("connections can be taken again") == 1 }, wiretest.Patience, time.Millisecond)
	require.NoError(t, peer.Close())
	require.NoError(t, next.Close())
}

// TestOverloadOfDescriptors: without descriptors, new connections fail or wait, and existing ones go on. When some
// become free, both ends take connections again, first the connection that has waited.
func TestOverloadOfDescriptors(t *testing.T) {
	if !testproc.Alone(t) {
		return
	}
	c := newManyConns(t, 20)
	c.waits()
	ctx := testContext(t)
	_, mr := c.server.register(8, stag.LocalWrite, nil)
	works := func() {
		for _, qp := range c.servers {
			require.NoError(t, qp.Send(ctx, mr.Slice(0, 8)))
		}
		for range c.servers {
			<-c.got
		}
	}
	works()
	more := noDescriptors(t, 1)
	early := dialsWithTheLast(t, c.l) // so that the listener has none
	defer early.Close()
	_, err := early.Write([]byte(wiretest.RequestKey + "\x40\x01\x00\x00"))
	require.NoError(t, err)
	for range 10 {
		_, err = c.client.rnic.Dial(ctx, "tcp", c.l.Addr().String(), &iwarp.QPConfig{PD: c.client.pd})
		require.ErrorIs(t, err, transport.ErrExhausted)
		works()
	}
	require.Eventually(t, func() bool {
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		_, err := c.l.Accept(short)
		require.ErrorIs(t, err, context.DeadlineExceeded, "the listener waits")
		return errors.Is(err, transport.ErrExhausted)
	}, wiretest.Patience, time.Millisecond)

	more(50)
	cr, err := c.l.Accept(ctx)
	require.NoError(t, err)
	require.Equal(t, early.LocalAddr().String(), cr.RemoteAddr().String(), "the one that has waited")
	_, err = cr.Accept(ctx, &iwarp.QPConfig{PD: c.server.pd})
	require.NoError(t, err)
	for range 5 {
		c.adds(ctx)
	}
	c.waits()
	works()
	require.NoError(t, c.client.rnic.Close())
	require.NoError(t, c.server.rnic.Close())
	c.left.Wait()
}

// becomesQuiet waits until this process does nothing: until there is a quarter of a second
// in which it uses a processor for less than a fifth of that time. A loop that polls never
// gives one; what has only begun to wait does, whatever else the machine is busy with.
func becomesQuiet(t *testing.T, why string) {
	t.Helper()
	const window = 250 * time.Millisecond
	for end := time.Now().Add(wiretest.Patience); time.Now().Before(end); {
		before := cpuTime(t)
		time.Sleep(window)
		if cpuTime(t)-before < window/5 {
			return
		}
	}
	require.Fail(t, "the process is never quiet", why)
}

// cpuTime is how long processors have worked for this process.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestHalfOpenConnectionsLeaveDescriptors for others where there are few.
func TestHalfOpenConnectionsLeaveDescriptors(t *testing.T) {
	if !testproc.Alone(t) {
		return
	}
	l := unix.Rlimit{Cur: 200, Max: 200}
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &l))
	require.Equal(t, 100, newSide(t, nil).rnic.Limits().MaxHalfOpen)
}
