//go:build !386

package sctpkernel

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/placertest"
	"github.com/goiwarp/iwarp/transport"
	"github.com/goiwarp/iwarp/transport/sctp"
)

// TestSCTP_1_2_3_4_33_IndicationIsEnforced: by the listener and by the client. That it is
// in INIT and INIT ACK is what lets the two of a pair meet.
func TestSCTP_1_2_3_4_33_IndicationIsEnforced(t *testing.T) {
	newPair(t).works()
	for name, given := range map[string]uint32{"none": 0, "another": 2} {
		t.Run("INIT with "+name, func(t *testing.T) {
			p := newPair(t)
			c, err := rawConnect(p.l.addr, given, 10, 10)
			if err == nil { // it learns at once, or a moment later
				defer c.Close()
				_, _, err = c.SCTPRead(make([]byte, 100))
			}
			require.True(t, errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED), "%v", err)
			p.works()
		})
		t.Run("INIT ACK with "+name, func(t *testing.T) {
			needsSCTP(t)
			l := rawListen(t, given)
			c := NewClient(Config{})
			defer c.Close()
			_, err := c.Open(t.Context(), l.Addr().String())
			require.ErrorIs(t, err, ErrNotDDP)
		})
	}
}

func TestSCTP_36_37_StreamsAreAsManyEachWay(t *testing.T) {
	require.Equal(t, streams.NumOstreams, streams.MaxInstreams)
	p := newPair(t)
	require.Equal(t, maxStreams, p.l.associations()[0].pairs)
	for _, asked := range [][2]uint16{{3, 5}, {5, 3}} {
		rawDialStreams(t, p.l.addr, sctp.Adaptation, asked[0], asked[1])
		require.Eventually(t, func() bool {
			for _, a := range p.l.associations() {
				select {
				case <-a.up:
					if a.pairs == 3 {
						return true
					}
				default:
				}
			}
			return false
		}, 5*time.Second, time.Millisecond, "%v", asked)
	}
}

// TestSCTP_5_22_MessagesThatAreNotOfDDP end the association or the session.
func TestSCTP_5_22_MessagesThatAreNotOfDDP(t *testing.T) {
	p := newPair(t)
	t.Run("a stream that is not there", func(t *testing.T) {
		c := rawDialStreams(t, p.l.addr, sctp.Adaptation, 5, 3)
		c.says(4, sctp.PPIDControl, "\x00\x00\x00\x01")
		c.isReset()
	})
	t.Run("a segment that begins a session", func(t *testing.T) {
		c := rawDial(t, p.l.addr, sctp.Adaptation)
		c.says(0, sctp.PPIDSegment, "\x00\x01segment")
		c.hears(0, sctp.PPIDControl, "\x00\x00\x00\x04")
		c.says(0, sctp.PPIDControl, "\x00\x00\x00\x01") // too late
		c.says(1, sctp.PPIDControl, "\x00\x00\x00\x09")
		c.hears(1, sctp.PPIDControl, "\x00\x00\x00\x04")
	})
	t.Run("a message that is too long", func(t *testing.T) {
		c := rawDial(t, p.l.addr, sctp.Adaptation)
		c.says(0, sctp.PPIDControl, "\x00\x00\x00\x01"+string(make([]byte, 40_000)))
		c.hears(0, sctp.PPIDControl, "\x00\x00\x00\x04")
		c.says(1, sctp.PPIDControl, "\x00\x00\x00\x04")
		c.hears(1, sctp.PPIDControl, "\x00\x00\x00\x04")
	})
	p.works()
}

// TestSCTP_6_43_MessagesOnTheWire: with their stream and PPID. That they are unordered
// shows their SSN, which does not grow.
func TestSCTP_6_43_MessagesOnTheWire(t *testing.T) {
	p := newPair(t)
	c := rawDial(t, p.l.addr, sctp.Adaptation)
	c.says(7, sctp.PPIDControl, "\x00\x00\x00\x01hello")
	r, err := p.l.Accept()
	require.NoError(t, err)
	require.Equal(t, "hello", string(r.PrivateData()))
	conn, _, err := r.Accept(sctp.Options{}, 1, 1, nil)
	require.NoError(t, err)
	c.hears(7, sctp.PPIDControl, "\x00\x00\x00\x02")
	for i := range 3 {
		require.True(t, conn.Append([]byte("segment"), nil, true))
		require.NoError(t, conn.Flush(true))
		info := c.hears(7, sctp.PPIDSegment, "\x00"+string(rune(i+1))+"segment")
		require.Zero(t, info.SSN)
		require.NotZero(t, info.Flags&1, "U")
	}
	require.NoError(t, conn.Close())
	c.says(7, sctp.PPIDControl, "\x00\x01\x00\x04")
}

// TestSCTP_9_31_53_StreamsAreUsedAgain: on the same association, when all is acknowledged.
func TestSCTP_9_31_53_StreamsAreUsedAgain(t *testing.T) {
	p := newPair(t)
	ours := p.c.pool.Associations()[0]
	for range 30 {
		client, server := p.session()
		require.NoError(t, client.Close())
		require.ErrorIs(t, placertest.Receive(server, &placertest.Collector{Want: 1}), io.EOF)
		require.NoError(t, server.Close())
		require.Eventually(t, func() bool {
			ours.mu.Lock()
			defer ours.mu.Unlock()
			return len(ours.streams) == 1 && ours.out.acked(ours.used[0].sent)
		}, 5*time.Second, time.Millisecond)
	}
	require.LessOrEqual(t, ours.next, 2)
	require.Len(t, p.l.associations(), 1)
	p.works()
}

func TestSCTP_34_35_OneAddressAtEachEnd(t *testing.T) {
	p := newPair(t)
	local := p.client.LocalAddr().(Addr)
	require.Equal(t, []netip.Addr{netip.MustParseAddr("127.0.0.1")}, local.IPs)
	require.Equal(t, p.server.RemoteAddr(), p.client.LocalAddr())
	require.Equal(t, p.server.LocalAddr(), p.client.RemoteAddr())
}

// TestSCTP_39_40_41_MessagesFitAPacket: of the path, with room for an acknowledgement,
// and the buffers of the receiver.
func TestSCTP_39_40_41_MessagesFitAPacket(t *testing.T) {
	for _, c := range []struct{ whole, message int }{{1452, 1436}, {1432, 1416}, {8952, 8704}, {65484, 8704}, {100, 516}} {
		require.Equal(t, c.message, maxMessage(c.whole), c.whole)
	}
}

// TestSCTP_38_42_LongerSegmentsAreRefused than the kernel says that the path carries.
func TestSCTP_38_42_LongerSegmentsAreRefused(t *testing.T) {
	p := newPair(t)
	whole, err := p.c.pool.Associations()[0].sock.unfragmented()
	require.NoError(t, err)
	require.Equal(t, maxMessage(whole)-2, p.client.MaxULPDU())
	p.client.Append(make([]byte, p.client.MaxULPDU()+1), nil, true)
	require.Error(t, p.client.Flush(true))
}

// TestSCTP_46_OutstandingMessagesAreBounded by the kernel's buffer, however small they are.
func TestSCTP_46_OutstandingMessagesAreBounded(t *testing.T) {
	const atMost, atLeast = 32767, 512
	p := newPair(t)
	a := p.c.pool.Associations()[0]
	require.Eventually(t, func() bool {
		kept, err := a.sock.queued()
		return err == nil && kept == 0
	}, 5*time.Second, time.Millisecond)
	a.out.mu.Lock()
	require.NoError(t, a.sock.send(100, sctp.PPIDSegment, false, []byte{1})) // on its way, or not acknowledged for a while
	kept, err := a.sock.queued()
	a.out.mu.Unlock()
	require.NoError(t, err)
	if kept > 0 {
		require.Greater(t, kept, atLeast)
	}
	for _, a := range append(p.l.associations(), a) {
		require.NoError(t, a.sock.control(func(fd int) error {
			n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
			require.Less(t, n, atMost*atLeast)
			return err
		}))
	}
}

// TestSCTP_50_51_AssociationIsAborted: its sessions end without a word of RDMAP.
func TestSCTP_50_51_AssociationIsAborted(t *testing.T) {
	p := newPair(t)
	for _, a := range p.l.associations() {
		a.fail(errors.New("enough"))
	}
	err := placertest.Receive(p.client, &placertest.Collector{Want: 1})
	require.ErrorIs(t, err, syscall.ECONNRESET)
	var fault *transport.Fault
	require.False(t, errors.As(err, &fault))
}

// TestNoListener: a dial to a port without a listener is refused at once.
func TestNoListener(t *testing.T) {
	needsSCTP(t)
	c := NewClient(Config{})
	defer c.Close()
	_, err := c.Open(t.Context(), "127.0.0.1:9")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.ErrorContains(t, err, "127.0.0.1:9")
}

// TestPeerThatAnswersNothing: the context bounds the waiting. The address is the
// broadcast address of loopback: what is sent to it is lost.
func TestPeerThatAnswersNothing(t *testing.T) {
	needsSCTP(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	c := NewClient(Config{})
	defer c.Close()
	start := time.Now()
	_, err := c.Open(ctx, "127.255.255.255:9")
	require.Error(t, err)
	require.Less(t, time.Since(start), 3*time.Second)
}

// TestSeveralAddresses: each end knows all of the other's.
func TestSeveralAddresses(t *testing.T) {
	needsSCTP(t)
	l, err := Listen(t.Context(), Config{}, "127.0.0.1/127.0.0.2:0", 4)
	require.NoError(t, err)
	p := &pair{T: t, l: l, c: NewClient(Config{})}
	defer l.End()
	defer p.c.Close()
	require.Regexp(t, `^127\.0\.0\.1/127\.0\.0\.2:[0-9]+$`, l.Addr().String())
	p.client, p.server = p.session()
	require.ElementsMatch(t, l.addr.IPs, p.client.RemoteAddr().(Addr).IPs)
	p.works()
}

// TestIPv6: with and without a listener of both families.
func TestIPv6(t *testing.T) {
	needsSCTP(t)
	l, err := Listen(t.Context(), Config{}, ":0", 4)
	require.NoError(t, err)
	defer l.End()
	for _, host := range []string{"[::1]", "127.0.0.1"} {
		p := &pair{T: t, l: l, c: NewClient(Config{})}
		defer p.c.Close()
		p.at = host + l.Addr().String()
		p.client, p.server = p.session()
		p.works()
	}
}

// TestBlockedSessionsCostNoThreads: fifty that wait to receive, each on an association of
// its own.
func TestBlockedSessionsCostNoThreads(t *testing.T) {
	p := newPair(t)
	threads := func() int {
		tasks, err := os.ReadDir("/proc/self/task")
		require.NoError(t, err)
		return len(tasks)
	}
	var waiting sync.WaitGroup
	ended := func(c *sctp.Conn) { require.Error(t, placertest.Receive(c, &placertest.Collector{Want: 1})) }
	var clients []*Client
	before := threads()
	for range 50 {
		more := &pair{T: t, l: p.l, c: NewClient(Config{})}
		client, server := more.session()
		clients = append(clients, more.c)
		waiting.Go(func() { ended(client) })
		waiting.Go(func() { ended(server) })
	}
	time.Sleep(50 * time.Millisecond) // for those that would block
	require.Less(t, threads(), before+20)
	for _, c := range clients {
		c.Close()
	}
	waiting.Wait()
}

// TestSessionThatTakesNothing does not make memory grow: its peer finds the window closed.
func TestSessionThatTakesNothing(t *testing.T) {
	p := newPair(t)
	sent := p.fill(p.client)
	held := &p.l.associations()[0].held
	held.mu.Lock()
	octets := held.octets
	held.mu.Unlock()
	require.LessOrEqual(t, octets, holdLimit+2*classes[2])
	require.NoError(t, placertest.Receive(p.server, &placertest.Counter{Left: sent}))
}

// fill sends segments of one end until the other, which takes none, has room for no more, and returns
// how many those are.
func (p *pair) fill(from *sctp.Conn) (sent int) {
	p.Helper()
	segment := make([]byte, from.MaxULPDU())
	for stalled := 0; stalled < 20; {
		require.True(p, from.Append(segment, nil, true))
		err := from.Flush(false)
		for ; errors.Is(err, transport.ErrAgain) && stalled < 20; stalled++ {
			time.Sleep(5 * time.Millisecond)
			err = from.Flush(false)
		}
		if err == nil {
			sent++
			stalled = 0
		}
		require.Less(p, sent*len(segment), 64<<20)
	}
	return sent
}

// TestWhatIsLeftWhenTheLastSessionEnds arrives: the association ends gracefully when all has been
// sent, the Terminate that waits for room included, and acknowledged, however long that takes.
func TestWhatIsLeftWhenTheLastSessionEnds(t *testing.T) {
	const timeout = 4 * time.Second
	p := newPairOf(t, Config{PeerTimeout: timeout})
	require.NoError(t, p.server.CloseSend())
	require.ErrorIs(t, placertest.Receive(p.client, &placertest.Collector{Want: 1}), io.EOF)
	sent := p.fill(p.client)
	require.NoError(t, p.client.Close())
	time.Sleep(3 * timeout)
	n := &placertest.Counter{Left: sent + 1}
	require.ErrorIs(t, placertest.Receive(p.server, n), io.EOF)
	require.Equal(t, 1, n.Left)
	require.NoError(t, p.server.Close())
}

// TestListenerWhoseLastSessionIsNotRead, for it has ended for the listener only, lets the peer begin
// another one on the association.
func TestListenerWhoseLastSessionIsNotRead(t *testing.T) {
	p := newPair(t)
	require.NoError(t, p.client.CloseSend())
	require.ErrorIs(t, placertest.Receive(p.server, &placertest.Collector{Want: 1}), io.EOF)
	sent := p.fill(p.server)
	require.NoError(t, p.server.Close())
	a, old := p.l.associations()[0], p.client
	require.Eventually(t, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.sessions == 0
	}, 5*time.Second, time.Millisecond)
	a.idleTimer.Reset(0)
	time.Sleep(shutdownTime)
	read := make(chan error)
	n := &placertest.Counter{Left: sent + 1}
	go func() { read <- placertest.Receive(old, n) }()
	p.client, p.server = p.session()
	require.ErrorIs(t, <-read, io.EOF)
	require.Equal(t, 1, n.Left)
	require.NoError(t, old.Close())
	p.works()
}

// TestShutdownOfThePeer ends its sessions.
func TestShutdownOfThePeer(t *testing.T) {
	p := newPair(t)
	p.c.Close()
	require.ErrorIs(t, placertest.Receive(p.server, &placertest.Collector{Want: 1}), syscall.ECONNRESET)
	_, err := p.c.Open(t.Context(), p.l.Addr().String())
	require.ErrorIs(t, err, net.ErrClosed)
}

// TestClosedListener refuses new sessions and associations, and leaves existing ones alone.
func TestClosedListener(t *testing.T) {
	p := newPair(t)
	_, err := Listen(t.Context(), Config{}, p.l.Addr().String(), 16)
	require.ErrorIs(t, err, syscall.EADDRINUSE, "of two listeners")
	p.l.Close()
	p.works()
	require.False(t, p.l.Over())
	next, err := Listen(t.Context(), Config{}, p.l.Addr().String(), 16)
	require.NoError(t, err, "associations leave the port to the next")
	next.End()
	s, err := p.c.Open(t.Context(), p.l.Addr().String())
	require.NoError(t, err, "the association is still there")
	_, _, err = sctp.Connect(t.Context(), s, sctp.Options{}, 1, 1, nil)
	require.ErrorIs(t, err, sctp.ErrRefused)
	_, err = NewClient(Config{}).Open(t.Context(), p.l.Addr().String())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = p.l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.NoError(t, p.client.Close())
	require.NoError(t, p.server.Close())
	require.Eventually(t, p.l.Over, 5*time.Second, time.Millisecond)
}

// TestUnusedAssociationEnds by and by.
func TestUnusedAssociationEnds(t *testing.T) {
	p := newPair(t)
	c := rawDial(t, p.l.addr, sctp.Adaptation)
	require.Eventually(t, func() bool { return len(p.l.associations()) == 2 }, 5*time.Second, time.Millisecond)
	for _, a := range p.l.associations() {
		<-a.up
		a.idleTimer.Reset(0) // the other one is in use
	}
	require.Eventually(t, func() bool { return len(p.l.associations()) == 1 }, 5*time.Second, time.Millisecond)
	_, _, err := c.SCTPRead(make([]byte, 10))
	require.Error(t, err)
	p.works()
}

// TestSessionThatBeginsWhenTheLastOneEnds: the Client hears late that there was none, and does not
// end the association under the new one.
func TestSessionThatBeginsWhenTheLastOneEnds(t *testing.T) {
	reuseTest(t, 9, func(t *testing.T, k *fakeKernel, a *association, first *stream) {
		c := NewClient(Config{})
		a.done = make(chan struct{})
		close(a.done)
		var fds [2]int
		require.NoError(t, unix.Pipe2(fds[:], unix.O_NONBLOCK))
		require.NoError(t, unix.Close(fds[1]))
		var err error
		a.sock, err = newSocket(fds[0]) // there is nothing to shut down
		require.NoError(t, err)
		defer a.sock.close()

		first.Release(true)
		a.streams[1].Release(true)
		s := openPair(t, a)
		c.idled(a)
		openPair(t, a).Release(true)
		s.Release(true)
		c.idled(a)
		_, ok := a.Open()
		require.False(t, ok, "now it is not in use")
	})
}

// shutTest runs a test as reuseTest does, with a socket. shut waits a minute, and reports whether the
// socket was told to shut down, or closed.
func shutTest(t *testing.T, f func(k *fakeKernel, a *association, first *stream, shut func() bool)) {
	reuseTest(t, 1, func(t *testing.T, k *fakeKernel, a *association, first *stream) {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		require.NoError(t, err)
		defer unix.Close(fds[1])
		a.sock, err = newSocket(fds[0])
		require.NoError(t, err)
		defer a.sock.close()
		a.held.init()
		a.done = make(chan struct{})
		defer close(a.done)
		f(k, a, first, func() bool {
			time.Sleep(time.Minute)
			synctest.Wait()
			_, err := unix.Read(fds[1], make([]byte, 1))
			return !errors.Is(err, unix.EAGAIN)
		})
	})
}

// TestShutdownWaitsForThePeer to acknowledge all: a kernel that has been told to shut down gives a peer
// up that has no room for what is left.
func TestShutdownWaitsForThePeer(t *testing.T) {
	shutTest(t, func(k *fakeKernel, a *association, first *stream, shut func() bool) {
		require.NoError(t, first.Send(sctp.PPIDSegment, octets(4), true))
		require.NoError(t, first.Send(sctp.PPIDControl, octets(4), true))
		first.Release(true)
		a.streams[1].Release(true)
		a.Retire()
		require.False(t, shut(), "the Terminate waits for room")
		a.out.mu.Lock() // which calls of the kernel hold
		k.room = 9
		a.out.mu.Unlock()
		k.drained <- struct{}{}
		require.False(t, shut(), "it is not acknowledged")
		a.out.mu.Lock()
		k.memory = 0
		a.out.mu.Unlock()
		require.True(t, shut())
		require.NoError(t, a.Err())
	})
}

// TestRetiredAssociationOpensNoSession, although the peer has used a pair meanwhile, which is given back.
func TestRetiredAssociationOpensNoSession(t *testing.T) {
	shutTest(t, func(k *fakeKernel, a *association, first *stream, shut func() bool) {
		require.NoError(t, first.Send(sctp.PPIDControl, octets(4), true))
		first.Release(true)
		a.streams[1].Release(true)
		a.Retire()
		a.mu.Lock()
		theirs := a.newStream(2)
		a.mu.Unlock()
		theirs.Release(true)
		a.out.mu.Lock() // which calls of the kernel hold
		k.memory = 0
		a.out.mu.Unlock()
		_, ok := a.Open()
		require.False(t, ok)
		require.True(t, shut())
	})
}

// TestPeerThatNeverHasRoomForTheLastOctets of a session that has ended is given up, by both ends.
func TestPeerThatNeverHasRoomForTheLastOctets(t *testing.T) {
	for _, initiator := range []bool{true, false} {
		shutTest(t, func(k *fakeKernel, a *association, first *stream, shut func() bool) {
			require.NoError(t, first.Send(sctp.PPIDControl, octets(4), true))
			if !initiator {
				a.mu.Lock()
				a.idleTimer = time.AfterFunc(idleTime, a.retireIfUnused)
				a.mu.Unlock()
			}
			first.Release(true)
			a.streams[1].Release(true)
			if initiator {
				a.Retire()
			}
			minutes := time.Duration(1)
			for ; !shut(); minutes++ {
				require.Less(t, minutes, time.Duration(60))
			}
			require.GreaterOrEqual(t, minutes*time.Minute, lastAcksTime)
			require.LessOrEqual(t, minutes*time.Minute, lastAcksTime+time.Minute)
			require.ErrorIs(t, a.Err(), net.ErrClosed)
			time.Sleep(lastLook) // until shutdown has noticed
		})
	}
}
