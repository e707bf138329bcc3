//go:build linux && !purego

package transport

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestRDMAP_81_SilentPeerIsGivenUp feeds an ackTimer with what the kernel would report.
func TestRDMAP_81_SilentPeerIsGivenUp(t *testing.T) {
	const second = 1000
	type moment struct {
		at                     int // ms
		unacked, probes, queue uint32
		silent                 uint32 // ms
		outstanding, dead      bool
	}
	for name, c := range map[string]struct {
		often time.Duration
		play  []moment
	}{
		"all is acknowledged": {2 * time.Second, []moment{{silent: 100 * second}}},
		"a closed window, every probe answered": {2 * time.Second, []moment{
			{at: 0, queue: 1, silent: 0, outstanding: true},
			{at: 10 * second, queue: 1, silent: 100, outstanding: true},
			{at: 40 * second, queue: 1, silent: 2 * second, outstanding: true},
			{at: 60 * second, queue: 1, probes: 1, silent: 3 * second, outstanding: true},
			{at: 90 * second, queue: 1, silent: 10, outstanding: true},
		}},
		"a closed window, and no answer any more": {2 * time.Second, []moment{
			{at: 0, queue: 1, silent: 100, outstanding: true},
			{at: 2 * second, queue: 1, probes: 1, silent: 2100, outstanding: true},
			{at: 6 * second, queue: 1, probes: 2, silent: 6100, outstanding: true},
			{at: 7 * second, queue: 1, probes: 2, silent: 7100, outstanding: true, dead: true},
		}},
		"a window that is seldom probed": {0, []moment{
			{at: 0, queue: 1, silent: 100 * second, outstanding: true},
			{at: 1 * second, queue: 1, probes: 1, silent: 101 * second, outstanding: true},
			{at: 8 * second, queue: 1, probes: 1, silent: 108 * second, outstanding: true},
			{at: 9 * second, queue: 1, probes: 2, silent: 109 * second, outstanding: true, dead: true},
		}},
		"octets after a long rest": {2 * time.Second, []moment{
			{at: 0, unacked: 1, silent: 100 * second, outstanding: true},
			{at: 3 * second, unacked: 1, silent: 103 * second, outstanding: true},
			{at: 4 * second, unacked: 1, silent: 104 * second, outstanding: true, dead: true},
		}},
		"always something on its way": {2 * time.Second, []moment{
			{at: 0, unacked: 5, silent: 10, outstanding: true},
			{at: 100 * second, unacked: 5, silent: 20, outstanding: true},
			{at: 107 * second, unacked: 5, silent: 6900, outstanding: true},
			{at: 108 * second, unacked: 5, silent: 7900, outstanding: true, dead: true},
		}},
		"this process is stopped, and sends when it goes on": {2 * time.Second, []moment{
			{at: 0, unacked: 5, silent: 10, outstanding: true},
			{at: 20 * second, unacked: 1, silent: 19990, outstanding: true},
			{at: 21 * second, unacked: 1, silent: 20990, outstanding: true},
			{at: 24 * second, unacked: 1, silent: 23990, outstanding: true, dead: true},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			v := newAckTimer(8*time.Second, c.often)
			start := time.Now()
			for _, m := range c.play {
				outstanding, dead := v.judge(start.Add(time.Duration(m.at)*time.Millisecond), &unix.TCPInfo{
					Unacked: m.unacked, Probes: uint8(m.probes), Notsent_bytes: m.queue,
					Last_ack_recv: m.silent, Last_data_recv: 1000 * second,
				})
				require.Equal(t, []bool{m.outstanding, m.dead}, []bool{outstanding, dead}, "at %d ms", m.at)
			}
		})
	}
}

// TestPeerWithAClosedWindowIsNotSilent: a peer that takes nothing for three times the timeout.
func TestPeerWithAClosedWindowIsNotSilent(t *testing.T) {
	t.Parallel()
	for name, secure := range map[string]bool{"TCP": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const timeout, lot = time.Second, 32 << 20
			pair := tcpPair
			if secure {
				pair = tlsPair
			}
			ac, bc := pair(t)
			require.NoError(t, SetPeerTimeout(ac, timeout))
			a := settled(ac, newPoller(t))
			t.Cleanup(func() { _, _ = a.Abort(), bc.Close() })
			written := writeAsync(a, lot)
			select {
			case err := <-written:
				require.Fail(t, "the peer has not taken it", "%v", err)
			case <-time.After(3 * timeout):
			}
			take(t, bc, lot)
			require.NoError(t, <-written, "a peer that acknowledges is there")
		})
	}
}

func writeAsync(s Stream, n int) chan error {
	written := make(chan error, 1)
	go func() {
		_, err := s.Write([][]byte{make([]byte, n)}, true)
		written <- err
	}()
	return written
}

func take(t *testing.T, c net.Conn, n int) {
	t.Helper()
	buf := make([]byte, 1<<20)
	for n > 0 {
		m, err := c.Read(buf)
		require.NoError(t, err)
		n -= m
	}
}

// TestSilentPeerEndsTheConnection: a Read and a Write that wait report it, and so does every
// later Read.
func TestSilentPeerEndsTheConnection(t *testing.T) {
	for name, secure := range map[string]bool{"TCP": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			pair := tcpPair
			if secure {
				pair = tlsPair
			}
			p := newPoller(t)
			ac, bc := pair(t)
			require.NoError(t, SetPeerTimeout(ac, time.Hour))
			a := settled(ac, p)
			t.Cleanup(func() { _, _ = a.Abort(), bc.Close() })
			var s *peerWatch
			switch a := a.(type) {
			case *rawStream:
				s = a.peer
			case *connStream:
				s = a.peer
			}
			require.NotNil(t, s, "the connection has a peer watch")
			require.Equal(t, time.Hour, s.limit)
			require.False(t, s.listed.Load(), "but not while nothing was written")
			written := writeAsync(a, 32<<20)
			read := readAsync(a, []byte{0})
			require.Eventually(t, s.listed.Load, 5*time.Second, time.Millisecond)
			waitParked(t, a)
			s.control(s.giveUp)
			require.ErrorIs(t, <-written, syscall.ETIMEDOUT)
			require.ErrorIs(t, (<-read).err, syscall.ETIMEDOUT)
			_, err := a.Read([]byte{0}, Park)
			require.ErrorIs(t, err, syscall.ETIMEDOUT, "for ever")
		})
	}
}

// TestWriteBesideACheckIsWatched: the check has found nothing outstanding, and the write begins before its end.
func TestWriteBesideACheckIsWatched(t *testing.T) {
	ac, bc := tcpPair(t)
	require.NoError(t, SetPeerTimeout(ac, time.Hour))
	a := settled(ac, newPoller(t))
	t.Cleanup(func() { _, _ = a.Abort(), bc.Close() })
	s := a.(*rawStream).peer
	checked := s.control
	s.control = func(f func(fd int)) {
		checked(f)
		s.wrote()
	}
	s.listed.Store(true)
	require.False(t, s.look(time.Now()))
	require.True(t, s.listed.Load(), "by the write")
}

// TestIdleConnectionIsNotWatched: the Poller stops its checks when all octets are acknowledged.
func TestIdleConnectionIsNotWatched(t *testing.T) {
	p := newPoller(t)
	ac, bc := tcpPair(t)
	require.NoError(t, SetPeerTimeout(ac, 2*time.Second))
	a := settled(ac, p)
	t.Cleanup(func() { _, _ = a.Abort(), bc.Close() })
	s := a.(*rawStream).peer
	for range 3 {
		put(t, a, "x")
		require.True(t, s.listed.Load())
		take(t, bc, 1)
		require.Eventually(t, func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return !s.listed.Load() && p.alarm.look == 0
		}, 5*time.Second, time.Millisecond)
	}
}

// TestConnectionThatIsNotTakenOverIsWatched: without a descriptor left, too, the time that the peer's
// window is closed does not count.
func TestConnectionThatIsNotTakenOverIsWatched(t *testing.T) {
	p := newPoller(t)
	ac, bc := tcpPair(t)
	t.Cleanup(func() { _, _ = ac.Close(), bc.Close() })
	require.NoError(t, SetPeerTimeout(ac, time.Hour))
	s := NewStream(ac, p)
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	const usual = 3 // of standard input, output and error
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: usual, Max: limit.Max}))
	d := Detach(s)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	require.Same(t, s, d, "it is driven by the methods of the net.Conn")
	wantOptions(t, ac, 0, 1, 20*60, 10*60)
	require.NotNil(t, d.(*tcpSetup).peer, "the Poller watches it")
}
