package transport

import (
	"context"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A kind is one way to get two connected Streams; all are held to one behaviour.
type kind struct {
	name  string
	conns func(t *testing.T) (a, b net.Conn)
	// make one Stream of a connection
	stream func(c net.Conn, p *Poller) Stream
	raw    bool // the raw path: can do without wait
	secure bool
}

func portable(c net.Conn, _ *Poller) Stream { return &connStream{conn: c, waker: waker{conn: c}} }

func tapped(c net.Conn, p *Poller) Stream {
	return Detach(Tap(NewStream(c, p), io.Discard, TapOptions{}))
}

func settled(c net.Conn, p *Poller) Stream { return Detach(NewStream(c, p)) }

var kinds = []kind{
	{name: "tcp", conns: tcpPair, stream: settled, raw: haveRaw},
	{name: "tcp without a Poller", conns: tcpPair, stream: func(c net.Conn, _ *Poller) Stream { return settled(c, nil) }},
	{name: "tcp in set-up", conns: tcpPair, stream: NewStream},
	{name: "tcp portable", conns: tcpPair, stream: portable},
	{name: "tcp tapped", conns: tcpPair, stream: tapped, raw: haveRaw},
	{name: "tls", conns: tlsPair, stream: NewStream, secure: true},
	{name: "pipe", conns: func(*testing.T) (a, b net.Conn) { return Pipe(PipeOptions{}) }, stream: NewStream},
}

// eachKind runs a test over every kind of Stream.
func eachKind(t *testing.T, test func(t *testing.T, k kind, a, b Stream)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			p := newPoller(t)
			ac, bc := k.conns(t)
			a, b := k.stream(ac, p), k.stream(bc, p)
			t.Cleanup(func() { _, _ = a.Abort(), b.Abort() })
			test(t, k, a, b)
		})
	}
}

func newPoller(t *testing.T) *Poller {
	t.Helper()
	p, err := NewPoller()
	require.NoError(t, err, "a poller is made")
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func tcpPair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	ctx := context.Background()
	l, err := Listen(ctx, "tcp", "127.0.0.1:0", Options{PeerTimeout: 15 * time.Second})
	require.NoError(t, err, "a listener on loopback")
	defer l.Close()
	a, err = Dial(ctx, "tcp", l.Addr().String(), Options{PeerTimeout: 15 * time.Second})
	require.NoError(t, err, "a connection to it")
	b, err = l.Accept()
	require.NoError(t, err, "the connection is accepted")
	require.IsType(t, (*net.TCPConn)(nil), b, "the raw path knows an accepted connection")
	return a, b
}

func tlsPair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	ac, bc := tcpPair(t)
	client, server := testTLS()
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		b, _ = TLSServer(context.Background(), bc, server)
	}()
	a, err = TLSClient(context.Background(), ac, client)
	<-done
	require.NoError(t, err, "the client's handshake succeeds")
	require.NotNil(t, b, "the server's handshake succeeds")
	return a, b
}

func TestStreamEcho(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, a, b Stream) {
		rnd := rand.New(rand.NewPCG(1, 2))
		data := make([]byte, 3<<20+17)
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		go func() { // echo
			buf := make([]byte, 100_000)
			for {
				n, err := b.Read(buf, Park)
				if err != nil {
					_ = b.CloseWrite()
					return
				}
				if m, err := b.Write([][]byte{buf[:n/3], buf[n/3 : n]}, true); err != nil || m != n {
					return
				}
			}
		}()
		go func() {
			n, err := a.Write(oddPieces(rnd, data), true)
			if err == nil && n == len(data) {
				_ = a.CloseWrite()
			}
		}()
		got := make([]byte, 0, len(data))
		buf := make([]byte, 512<<10)
		for {
			n, err := a.Read(buf, Park)
			got = append(got, buf[:n]...)
			if err != nil {
				require.Equal(t, io.EOF, err, "the echo ends gracefully")
				break
			}
		}
		require.True(t, string(data) == string(got), "the echo is what was sent: %d octets of %d", len(got), len(data))
		require.Equal(t, k.secure, a.Secure(), "only TLS is secure")
	})
}

// oddPieces cuts data into more pieces than one system call takes: empty, tiny and
// large ones.
func oddPieces(rnd *rand.Rand, data []byte) [][]byte {
	var bufs [][]byte
	for len(data) > 0 {
		n := min(len(data), rnd.IntN(40))
		if rnd.IntN(100) == 0 {
			n = min(len(data), rnd.IntN(200_000))
		}
		bufs = append(bufs, data[:n])
		data = data[n:]
	}
	return append(bufs, nil)
}

func TestStreamWithoutWait(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, a, b Stream) {
		buf := make([]byte, 1<<20)
		n, err := a.Read(buf, NoWait)
		require.Equal(t, ErrAgain, err, "there is nothing to read")
		require.Zero(t, n, "nothing is read")
		if !k.raw {
			n, err = a.Write([][]byte{buf}, false)
			require.Equal(t, ErrAgain, err, "such a stream writes only with wait")
			require.Zero(t, n, "nothing is written")
			require.Zero(t, a.Gather(), "such a stream copies")
			return
		}
		require.Equal(t, 1024, a.Gather(), "one system call takes so many buffers")
		require.Greater(t, a.EMSS(), 500, "the segment size is known")
		total := 0
		for err = nil; err == nil; total += n {
			n, err = a.Write([][]byte{buf[:100], buf}, false)
		}
		require.Equal(t, ErrAgain, err, "the socket is full at last")
		go func() {
			for n := 0; n < total; {
				m, err := b.Read(buf, Park)
				if err != nil {
					return
				}
				n += m
			}
			_, _ = b.Write([][]byte{{1}}, true)
		}()
		_, err = a.Read(make([]byte, 1), Park)
		require.NoError(t, err, "exactly what was reported as written has gone out")
	})
}

func TestStreamReadsToTheEnd(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, a, b Stream) {
		_, err := a.Write([][]byte{[]byte("data and FIN together")}, true)
		require.NoError(t, err, "octets go out")
		require.NoError(t, a.CloseWrite(), "and the end")
		buf := make([]byte, 1000)
		n := 0
		for err == nil {
			var m int
			m, err = b.Read(buf[n:], Park)
			n += m
		}
		require.Equal(t, io.EOF, err, "the end is seen after the octets")
		require.Equal(t, "data and FIN together", string(buf[:n]), "the octets come first")
		if k.raw {
			_, err = b.Read(buf, NoWait)
			require.Equal(t, io.EOF, err, "the end is seen without wait")
		}
		_, err = b.Write([][]byte{[]byte("answer")}, true)
		require.NoError(t, err, "the other half still works")
		n, err = a.Read(buf, Park)
		require.NoError(t, err, "the answer arrives after our end")
		require.Equal(t, "answer", string(buf[:n]), "the answer arrives after our end")
	})
}

func TestStreamWake(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, a, b Stream) {
		buf := make([]byte, 10)
		a.Wake()
		a.Wake()
		_, err := a.Read(buf, Park)
		require.Equal(t, ErrWoken, err, "a wake before the read is not lost")

		for range 20 {
			res := readAsync(a, buf)
			waitParked(t, a)
			a.Wake()
			require.Equal(t, ErrWoken, (<-res).err, "a parked read is woken")
		}
		_, err = b.Write([][]byte{[]byte("still alive")}, true)
		require.NoError(t, err, "the peer writes")
		n, err := a.Read(buf, Park)
		require.NoError(t, err, "no wake is left over")
		require.Equal(t, "still aliv", string(buf[:n]), "the stream works after having been woken")
	})
}

func TestStreamWakeRace(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, a, b Stream) {
		const octets = 20_000
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for !stop.Load() {
				a.Wake()
				time.Sleep(20 * time.Microsecond)
			}
		})
		wg.Go(func() {
			one := []byte{0}
			for i := 0; !stop.Load(); i++ {
				one[0] = byte(i)
				if _, err := b.Write([][]byte{one}, true); err != nil {
					return
				}
			}
		})
		buf := make([]byte, 64)
		next, woken := 0, 0
		for end := time.Now().Add(time.Minute); (next < octets || woken == 0) && time.Now().Before(end); {
			n, err := a.Read(buf, Park)
			if err != nil {
				require.Equal(t, ErrWoken, err, "nothing but the wake ends a read")
				woken++
			}
			for _, c := range buf[:n] {
				require.Equal(t, byte(next), c, "octet %d is in its place", next)
				next++
			}
		}
		stop.Store(true)
		_ = b.Close() // where it waits for room
		wg.Wait()
		require.GreaterOrEqual(t, next, octets)
		require.NotZero(t, woken, "the race was run")
	})
}

func TestStreamDeadlineInSetUp(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, a, b Stream) {
		if k.raw {
			require.ErrorIs(t, a.SetDeadline(time.Now()), os.ErrNoDeadline, "set-up is over")
			return
		}
		require.NoError(t, a.SetDeadline(time.Now().Add(5*time.Millisecond)), "a deadline is set")
		_, err := a.Read(make([]byte, 1), Park)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "it bounds a read")
		require.NoError(t, a.SetDeadline(time.Time{}), "it is taken away")
		_, err = b.Write([][]byte{{7}}, true)
		require.NoError(t, err, "the peer writes")
		n, err := a.Read(make([]byte, 1), Park)
		require.NoError(t, err, "the stream works on")
		require.Equal(t, 1, n, "the octet arrives")
	})
}

func TestStreamAbort(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, a, b Stream) {
		_, err := b.Write([][]byte{[]byte("unread")}, true)
		require.NoError(t, err, "octets are on their way")
		require.NoError(t, a.Abort(), "one end aborts")
		_, err = b.Read(make([]byte, 1), Park)
		require.Error(t, err, "the other end learns it")
		require.NotEqual(t, io.EOF, err, "an abort does not look like a graceful end")
		_, err = a.Read(make([]byte, 1), Park)
		require.ErrorIs(t, err, net.ErrClosed, "the end that aborted is closed")
		_, err = a.Write([][]byte{{1}}, true)
		require.ErrorIs(t, err, net.ErrClosed, "the end that aborted is closed")
		require.False(t, a.Arm(func() {}), "a closed stream cannot be armed")
		a.Disarm()
		a.Wake()
	})
}

func TestStreamCloseEndsParkedCalls(t *testing.T) {
	for _, how := range []struct {
		name string
		end  func(Stream) error
	}{{"close", Stream.Close}, {"abort", Stream.Abort}} {
		t.Run(how.name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, k kind, a, b Stream) {
				read := readAsync(a, make([]byte, 1))
				waitParked(t, a)
				written := make(chan error, 1)
				go func() {
					big := make([]byte, 32<<20)
					_, err := a.Write([][]byte{big[:10], big}, true)
					written <- err
				}()
				time.Sleep(5 * time.Millisecond) // let the writer fill the socket
				_ = how.end(a)
				require.ErrorIs(t, (<-read).err, net.ErrClosed, "a parked read ends")
				require.ErrorIs(t, <-written, net.ErrClosed, "a parked write ends")
			})
		})
	}
}

type readResult struct {
	n   int
	err error
}

func readAsync(s Stream, buf []byte) <-chan readResult {
	res := make(chan readResult, 1)
	go func() {
		n, err := s.Read(buf, Park)
		res <- readResult{n, err}
	}()
	return res
}

// waitParked waits until a Read of s is parked, or as good as.
func waitParked(t *testing.T, s Stream) {
	t.Helper()
	require.Eventually(t, func() bool { return isParked(s) }, 10*time.Second, 50*time.Microsecond, "a read parks")
}

func (w *waker) isParked() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.parked
}

func TestTLSConfig(t *testing.T) {
	c, _ := Pipe(PipeOptions{})
	_, err := TLSClient(context.Background(), c, nil)
	require.ErrorIs(t, err, errNoTLSConfig, "TLS needs a configuration")
	require.ErrorIs(t, c.Close(), net.ErrClosed, "a failure closes the connection")
	a, b := tlsPair(t)
	defer a.Close()
	defer b.Close()
	require.Equal(t, uint16(tls.VersionTLS13), a.(*tls.Conn).ConnectionState().Version, "TLS 1.3 it is")
	require.NoError(t, SetPeerTimeout(a, time.Second), "the timeout reaches the socket below TLS")
}

// TestWakeThatComesWithOctetsIsNotLost: the read that returns them does not report it, the next one does.
func TestWakeThatComesWithOctetsIsNotLost(t *testing.T) {
	c, far := Pipe(PipeOptions{})
	defer c.Close()
	defer far.Close()
	w := waker{conn: c}
	require.True(t, w.park())
	w.wake()
	require.NoError(t, w.unpark(nil))
	require.False(t, w.park())
	require.True(t, w.park(), "once")
}

// A limited is a net.Conn that fails behind so many octets.
type limited struct {
	net.Conn
	left int
}

func (c *limited) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	if n < len(p) {
		return n, io.ErrClosedPipe
	}
	return n, nil
}

// TestGatherCountsWhatPrecedesAFailure, in earlier blocks and in the last one.
func TestGatherCountsWhatPrecedesAFailure(t *testing.T) {
	for left := range 11 {
		s := &connStream{conn: &limited{left: left}}
		n, err := s.gather([][]byte{make([]byte, 3), nil, make([]byte, 7)}, 4)
		require.Equal(t, left, n)
		require.Equal(t, left < 10, err != nil)
	}
}
