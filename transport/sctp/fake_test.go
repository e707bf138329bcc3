package sctp

import (
	"context"
	"encoding/hex"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/octettest"
	"github.com/goiwarp/iwarp/transport"
)

var octets = octettest.Hex

// A fakeStream is a Stream whose peer the test plays.
type fakeStream struct {
	mu       sync.Mutex
	sent     []sentMessage
	max      int
	full     bool // no room but for what is urgent
	unacked  bool
	changed  chan struct{}
	in       chan sentMessage
	wake     chan struct{}
	lost     chan struct{}
	released []bool
}

type sentMessage struct {
	ppid uint32
	msg  []byte
}

func newFake() *fakeStream { return newFakeOf(1 << 17) }

// newFakeOf makes one that holds so many messages of the peer.
func newFakeOf(messages int) *fakeStream {
	return &fakeStream{
		max: 1450, changed: make(chan struct{}), in: make(chan sentMessage, messages),
		wake: make(chan struct{}, 1), lost: make(chan struct{}),
	}
}

func (f *fakeStream) Send(ppid uint32, msg []byte, urgent bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full && !urgent {
		return transport.ErrAgain
	}
	f.sent = append(f.sent, sentMessage{ppid, append([]byte(nil), msg...)})
	return nil
}

// set changes what Room and Acked wait for.
func (f *fakeStream) set(full, unacked bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full, f.unacked = full, unacked
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeStream) await(done <-chan struct{}, holds func() bool) bool {
	for {
		f.mu.Lock()
		ok, changed := holds(), f.changed
		f.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-done:
			return false
		}
	}
}

func (f *fakeStream) Room(done <-chan struct{}) { f.await(done, func() bool { return !f.full }) }
func (f *fakeStream) Acked(done <-chan struct{}) bool {
	return f.await(done, func() bool { return !f.unacked })
}

func (f *fakeStream) Receive(p []byte) (int, uint32, error) {
	select {
	case m := <-f.in:
		return copy(p, m.msg), m.ppid, nil
	case <-f.wake:
		return 0, 0, transport.ErrWoken
	case <-f.lost:
		return 0, 0, io.ErrUnexpectedEOF
	}
}

func (f *fakeStream) Wake() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *fakeStream) MaxMessage() int { return f.max }

func (f *fakeStream) Release(clean bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.released = append(f.released, clean)
}

func (f *fakeStream) LocalAddr() net.Addr  { return nil }
func (f *fakeStream) RemoteAddr() net.Addr { return nil }

// says makes the peer send a message, given in hexadecimal.
func (f *fakeStream) says(ppid uint32, msg string) { f.in <- sentMessage{ppid, octets(msg)} }

// wantSent compares what was sent since the last call, each as its PPID and octets.
func (f *fakeStream) wantSent(t *testing.T, want ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	var got []string
	for _, m := range f.sent {
		got = append(got, map[uint32]string{16: "16 ", 17: "17 "}[m.ppid]+hex.EncodeToString(m.msg))
	}
	for i, w := range want {
		want[i] = w[:3] + strings.ReplaceAll(w[3:], " ", "")
	}
	require.Equal(t, want, got)
	f.sent = nil
}

// wantReleased waits until the streams were given back, once.
func (f *fakeStream) wantReleased(t *testing.T, clean bool) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Equal(t, []bool{clean}, f.released)
}

// active is a plain session that was accepted.
func active(t *testing.T) (*Conn, *fakeStream) {
	t.Helper()
	f := newFake()
	f.says(17, "0000 0002")
	c, _, err := Connect(context.Background(), f, Options{Plain: true}, 1, 1, nil)
	require.NoError(t, err)
	f.wantSent(t, "17 0000 0001")
	return c, f
}

// passive is a plain session that we accepted.
func passive(t *testing.T) (*Conn, *fakeStream) {
	t.Helper()
	f := newFake()
	f.says(17, "0000 0001")
	r, err := ReadRequest(context.Background(), f)
	require.NoError(t, err)
	c, _, err := r.Accept(Options{}, 1, 1, nil)
	require.NoError(t, err)
	f.wantSent(t, "17 0000 0002")
	return c, f
}
