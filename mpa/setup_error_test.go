package mpa

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

// TestErrorsOfSetUpSayWhatHappened: on which side, and in which step.
func TestErrorsOfSetUpSayWhatHappened(t *testing.T) {
	connect := func(ctx context.Context, c net.Conn) error {
		_, _, err := Connect(ctx, transport.NewStream(c, nil), Options{}, 1, 1, nil)
		return err
	}
	respond := func(ctx context.Context, c net.Conn) error {
		_, err := ReadRequest(ctx, transport.NewStream(c, nil))
		return err
	}
	accept := func(ctx context.Context, c net.Conn) error {
		r, err := ReadRequest(ctx, transport.NewStream(c, nil))
		require.NoError(t, err)
		_, _, err = r.Accept(ctx, Options{}, 1, 1, nil)
		return err
	}
	timeout := errors.New("time is up")
	for name, c := range map[string]struct {
		do   func(context.Context, net.Conn) error
		peer func(t *testing.T, far, near net.Conn) // runs beside
		says string
		is   []error
		not  []error
	}{
		"the context ends, an initiator": {
			connect, func(_ *testing.T, far, _ net.Conn) { _, _ = io.Copy(io.Discard, far) },
			"mpa: waiting for the MPA Reply: time is up (context deadline exceeded)",
			[]error{context.DeadlineExceeded, timeout},
			[]error{ErrNoReply},
		},
		"the context ends, a responder": {
			respond, func(*testing.T, net.Conn, net.Conn) {},
			"mpa: waiting for the MPA Request: time is up (context deadline exceeded)",
			[]error{context.DeadlineExceeded, timeout},
			nil,
		},
		"the context ends while the Reply goes out": {accept, func(t *testing.T, far, _ net.Conn) {
			_, err := far.Write(unhex(frameR1))
			require.NoError(t, err)
		}, "mpa: sending the MPA Reply: time is up (context deadline exceeded)", []error{context.DeadlineExceeded, timeout}, nil},
		"the peer closes": {connect, func(t *testing.T, far, _ net.Conn) {
			_, err := io.ReadFull(far, make([]byte, 24))
			require.NoError(t, err)
			require.NoError(t, far.Close())
		}, "MPA: TCP connection closed, terminated or lost (2/0/01): waiting for the MPA Reply: mpa: connection closed without a Reply: unexpected EOF", []error{ErrNoReply}, nil},
		"the peer closes before it has all of the Request": {
			connect, func(t *testing.T, far, _ net.Conn) { require.NoError(t, far.Close()) },
			"MPA: TCP connection closed, terminated or lost (2/0/01): waiting for the MPA Reply: mpa: connection closed without a Reply: EOF",
			[]error{ErrNoReply},
			nil,
		},
		"closed on this side": {connect, func(t *testing.T, far, near net.Conn) {
			_, err := io.ReadFull(far, make([]byte, 24))
			require.NoError(t, err)
			require.NoError(t, near.Close())
		}, "", []error{io.ErrClosedPipe}, []error{ErrNoReply}},
		"closed on this side, while the Request goes out": {connect, func(t *testing.T, far, near net.Conn) {
			_, err := io.ReadFull(far, make([]byte, 4))
			require.NoError(t, err)
			require.NoError(t, near.Close())
		}, "", []error{io.ErrClosedPipe}, []error{ErrNoReply}},
		"a peer that expects TLS": {connect, func(t *testing.T, far, _ net.Conn) {
			_, err := io.ReadFull(far, make([]byte, 24))
			require.NoError(t, err)
			_, err = far.Write([]byte{21, 3, 1, 0, 2, 2, 70})
			require.NoError(t, err)
			require.NoError(t, far.Close())
		}, "MPA: invalid Request or Reply frame (2/0/04): the peer uses TLS, and this side does not", []error{ErrTLS}, []error{ErrNoReply}},
		"a peer that begins TLS": {respond, func(t *testing.T, far, _ net.Conn) {
			_, err := far.Write(append([]byte{22, 3, 1, 1, 0}, make([]byte, 15)...))
			require.NoError(t, err)
		}, "MPA: invalid Request or Reply frame (2/0/04): the peer uses TLS, and this side does not", []error{ErrTLS}, nil},
		"a peer that is something else": {respond, func(t *testing.T, far, _ net.Conn) {
			_, err := far.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")[:HeaderSize])
			require.NoError(t, err)
		}, `MPA: invalid Request or Reply frame (2/0/04): not an MPA frame: it begins with "GET / HTTP/1.1\r\n"`, nil, []error{ErrTLS}},
		"a peer that is something else, and says less than a frame has": {connect, func(t *testing.T, far, _ net.Conn) {
			_, err := io.ReadFull(far, make([]byte, 24))
			require.NoError(t, err)
			_, err = far.Write([]byte("220 mail\r\n"))
			require.NoError(t, err)
			_, _ = far.Read(make([]byte, 1)) // it waits for an answer
		}, `MPA: invalid Request or Reply frame (2/0/04): not an MPA frame: it begins with "220 mail\r\n"`, nil, []error{ErrTLS, ErrNoReply, timeout}},
		"a peer that says a part of the key, and something else": {respond, func(t *testing.T, far, _ net.Conn) {
			for _, part := range []string{"MPA ID ", "Rex"} {
				_, err := far.Write([]byte(part))
				require.NoError(t, err)
			}
			_, _ = far.Read(make([]byte, 1))
		}, `MPA: invalid Request or Reply frame (2/0/04): not an MPA frame: it begins with "MPA ID Rex"`, nil, []error{ErrTLS, timeout}},
		"both ends are initiators, octet by octet": {connect, func(t *testing.T, far, _ net.Conn) {
			frame := make([]byte, 24)
			_, err := io.ReadFull(far, frame)
			require.NoError(t, err)
			for _, b := range frame[:HeaderSize] {
				_, err = far.Write([]byte{b})
				require.NoError(t, err)
			}
		}, "MPA: invalid Request or Reply frame (2/0/04): a Request where a Reply is due: both ends are initiators", nil, []error{ErrNoReply}},
		"a peer that begins TLS, octet by octet": {respond, func(t *testing.T, far, _ net.Conn) {
			for _, b := range []byte{22, 3, 1} {
				_, err := far.Write([]byte{b})
				require.NoError(t, err)
			}
			_, _ = far.Read(make([]byte, 1))
		}, "MPA: invalid Request or Reply frame (2/0/04): the peer uses TLS, and this side does not", []error{ErrTLS}, []error{timeout}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(context.Background(), 200*time.Millisecond, timeout)
				defer cancel()
				near, far := net.Pipe()
				defer far.Close()
				done := make(chan struct{})
				go func() {
					defer close(done)
					c.peer(t, far, near)
				}()
				err := c.do(ctx, near)
				<-done
				var fault *transport.Fault
				require.ErrorAs(t, err, &fault)
				if c.says != "" {
					require.EqualError(t, err, c.says)
				}
				for _, is := range c.is {
					require.ErrorIs(t, err, is)
				}
				for _, not := range c.not {
					require.NotErrorIs(t, err, not)
				}
			})
		})
	}
}

// TestWhatThePeerHasSentIsTold, even if the context ends at the same time.
func TestWhatThePeerHasSentIsTold(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &script{reads: [][]byte{[]byte("GET / HTTP/1.1\r\n")}, before: cancel}
	_, err := ReadRequest(ctx, s)
	requireFault(t, transport.MPAStartup, err)
	require.NotErrorIs(t, err, context.Canceled)
}
