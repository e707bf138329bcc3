package iwarp_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/transport"
)

// badRequests are Requests that a responder must not answer.
var badRequests = map[string]string{
	"private data of 513 octets":   wiretest.RequestKey + "\x40\x01\x02\x01" + string(make([]byte, 513)),
	"private data of 65535 octets": wiretest.RequestKey + "\x40\x01\xff\xff",
	"key of a Reply":               wiretest.ReplyKey + "\x40\x01\x00\x00",
	"key with one wrong bit":       "MPA ID Req Framd" + "\x40\x01\x00\x00",
	"no MPA at all":                "GET / HTTP/1.1\r\nHost: www\r\n\r\n",
	"revision 0":                   wiretest.RequestKey + "\x40\x00\x00\x00",
	"revision 3":                   wiretest.RequestKey + "\x40\x03\x00\x00",
	"enhanced without the data":    wiretest.RequestKey + "\x50\x02\x00\x00",
	"enhanced with half the data":  wiretest.RequestKey + "\x50\x02\x00\x03abc",
}

// TestMPA_51_58_59_62_63_71_74_76_81_83_BadRequests: the connection is closed without an octet from this side, and
// Server returns an error to its application.
func TestMPA_51_58_59_62_63_71_74_76_81_83_BadRequests(t *testing.T) {
	for name, request := range badRequests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newLonelyVictim(t)
				a, b := transport.Pipe(transport.PipeOptions{})
				defer a.Close()
				p := &wiretest.Peer{TB: t, Conn: a}
				p.Write([]byte(request))
				_, err := v.rnic.Server(testContext(t), b, nil)
				var f *transport.Fault
				require.ErrorAs(t, err, &f)
				require.Equal(t, transport.MPAStartup, f.Code)
				p.WantClosed("nothing is answered")
				v.othersLive()
			})
		})
	}
}

// TestMPA_51_63_83_ListenerOutlivesBadRequests.
func TestMPA_51_63_83_ListenerOutlivesBadRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newLonelyVictim(t)
		l, err := v.rnic.Listen(testContext(t), "pipe", "", &iwarp.ListenConfig{MaxHalfOpen: 1})
		require.NoError(t, err)
		defer l.Close()
		for _, request := range badRequests {
			p := dialRaw(t, l)
			p.Write([]byte(request))
			p.WantClosed("nothing is answered")
		}
		p := dialRaw(t, l)
		p.Write([]byte(wiretest.RequestKey + "\x40\x01\x00\x00"))
		cr, err := l.Accept(testContext(t))
		require.NoError(t, err, "a good Request is heard after all that")
		require.NoError(t, cr.Reject(nil))
	})
}

func dialRaw(t *testing.T, l *iwarp.Listener) *wiretest.Peer {
	c, err := transport.Dial(context.Background(), "pipe", l.Addr().String(), transport.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return &wiretest.Peer{TB: t, Conn: c}
}

// TestMPA_75_77_SEC_42_RequestThatNeverEnds: octets that arrive slowly do not extend the timeout.
func TestMPA_75_77_SEC_42_RequestThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newLonelyVictim(t)
		const timeout = 3 * time.Second
		l, err := v.rnic.Listen(testContext(t), "pipe", "", &iwarp.ListenConfig{MaxHalfOpen: 2, SetupTimeout: timeout})
		require.NoError(t, err)
		defer l.Close()
		start := time.Now()
		closed := make(chan time.Duration, 2)
		for range cap(closed) {
			p := dialRaw(t, l)
			go func() {
				p.Dribble([]byte(wiretest.RequestKey+"\x40\x01\x02\x00"), timeout/100)
				closed <- time.Since(start)
			}()
		}
		for range cap(closed) {
			require.InDelta(t, timeout, <-closed, float64(timeout/50), "they are closed at the timeout")
		}
		v.othersLive()
	})
}

// TestSEC_42_RequestThatDoesNotProgress: a peer that sends nothing, or stops in the middle, gets less time than a peer
// that goes on.
func TestSEC_42_RequestThatDoesNotProgress(t *testing.T) {
	for name, octets := range map[string]string{"silent": "", "stops": wiretest.RequestKey + "\x40"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newLonelyVictim(t)
				l, err := v.rnic.Listen(testContext(t), "pipe", "", &iwarp.ListenConfig{ProgressTimeout: time.Second})
				require.NoError(t, err)
				defer l.Close()
				p := dialRaw(t, l)
				start := time.Now()
				for _, octet := range []byte(octets) {
					time.Sleep(100 * time.Millisecond)
					p.Write([]byte{octet})
					start = time.Now()
				}
				p.WantClosed("nothing is answered")
				require.Equal(t, time.Second, time.Since(start), "counted from the last octet")

				p = dialRaw(t, l)
				p.Write([]byte(wiretest.RequestKey + "\x40\x01\x00\x00"))
				time.Sleep(time.Minute)
				cr, err := l.Accept(testContext(t))
				require.NoError(t, err)
				require.NoError(t, cr.Reject(nil), "the application may think about a whole Request")
				p.Read(20)
				v.othersLive()
			})
		})
	}
}

// TestSEC_2_42_SlowRequestsDoNotBlockOthers: many more slow Requests arrive than may be half open, and each comes back
// as soon as it is refused.
func TestSEC_2_42_SlowRequestsDoNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const dribblers, honest, limit = 2400, 50, 64
		v := newLonelyVictim(t)
		l, err := v.rnic.Listen(testContext(t), "pipe", "", &iwarp.ListenConfig{MaxHalfOpen: limit})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		var gone sync.WaitGroup
		for i := range dribblers {
			gone.Go(func() {
				pause := time.Duration(i) * time.Millisecond // 1,000 new ones a second
				for ctx.Err() == nil {
					time.Sleep(pause)
					pause = time.Second
					if c, err := transport.Dial(ctx, "pipe", l.Addr().String(), transport.Options{}); err == nil {
						(&wiretest.Peer{TB: t, Conn: c}).Dribble([]byte(wiretest.RequestKey+"\x40\x01\x02\x00"), 700*time.Millisecond)
						_ = c.Close()
					}
				}
			})
		}
		time.Sleep(dribblers * time.Millisecond)
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			for range honest {
				if cr, err := l.Accept(ctx); err == nil {
					_ = cr.Reject(nil)
				}
			}
		}()
		for range honest {
			start := time.Now()
			_, err := v.rnic.Dial(ctx, "pipe", l.Addr().String(), &iwarp.QPConfig{PD: v.pd})
			require.ErrorIs(t, err, iwarp.ErrRejected)
			require.Less(t, time.Since(start), time.Second, "an honest peer gets its answer")
			require.LessOrEqual(t, v.rnic.HalfOpen(), limit, "no more are half open than may be")
			time.Sleep(50 * time.Millisecond)
		}
		<-answered
		cancel()
		require.NoError(t, l.Close())
		gone.Wait()
		v.othersLive()
	})
}

// TestMPA_53_59_67_71_74_81_83_BadReplies: the initiator closes the connection and
// tells its application.
func TestMPA_53_59_67_71_74_81_83_BadReplies(t *testing.T) {
	for name, reply := range map[string]string{
		"private data of 513 octets":  wiretest.ReplyKey + "\x40\x02\x02\x01" + string(make([]byte, 513)),
		"key of a Request":            wiretest.RequestKey + "\x40\x02\x00\x00",
		"key with one wrong bit":      "MPA ID Rep Framd" + "\x50\x02\x00\x04\x00\x00\x00\x00",
		"no MPA at all":               "SSH-2.0-OpenSSH_9.9\r\n",
		"revision 0":                  wiretest.ReplyKey + "\x40\x00\x00\x00",
		"revision 1":                  wiretest.ReplyKey + "\x40\x01\x00\x00",
		"not enhanced":                wiretest.ReplyKey + "\x40\x02\x00\x00",
		"enhanced without the data":   wiretest.ReplyKey + "\x50\x02\x00\x00",
		"enhanced with half the data": wiretest.ReplyKey + "\x50\x02\x00\x02ab",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newLonelyVictim(t)
				a, b := transport.Pipe(transport.PipeOptions{})
				defer a.Close()
				p := &wiretest.Peer{TB: t, Conn: a}
				failed := make(chan error, 1)
				go func() {
					_, err := v.rnic.Client(testContext(t), b, &iwarp.QPConfig{PD: v.pd})
					failed <- err
				}()
				p.Read(24)
				p.Write([]byte(reply))
				var f *transport.Fault
				require.ErrorAs(t, <-failed, &f)
				require.Equal(t, transport.MPAStartup, f.Code)
				p.WantClosed("nothing follows the Request")
				v.othersLive()
			})
		})
	}
}

// TestMPA_75_77_ReplyThatNeverEnds: the context bounds all of the set-up.
func TestMPA_75_77_ReplyThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newLonelyVictim(t)
		a, b := transport.Pipe(transport.PipeOptions{})
		defer a.Close()
		const timeout = 3 * time.Second
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			(&wiretest.Peer{TB: t, Conn: a}).Dribble([]byte(wiretest.ReplyKey+"\x40\x02\x02\x00"), timeout/100)
		}()
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		start := time.Now()
		_, err := v.rnic.Client(ctx, b, &iwarp.QPConfig{PD: v.pd})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, errors.Is(err, net.ErrClosed), "no QP was there to be closed")
		require.Equal(t, timeout, time.Since(start), "octets that dribble in extend nothing")
		<-gone
		v.othersLive()
	})
}
