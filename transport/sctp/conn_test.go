package sctp

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/placertest"
	"github.com/goiwarp/iwarp/transport"
)

// TestReceiveReportsTheEndOfASession once it has read all before it, and ever after.
func TestReceiveReportsTheEndOfASession(t *testing.T) {
	cause := errors.New("some cause")
	for name, v := range map[string]struct {
		end  func(*Conn)
		want error
	}{
		"Close": {func(c *Conn) { require.NoError(t, c.Close()) }, net.ErrClosed},
		"Abort": {func(c *Conn) { c.Abort(cause) }, cause},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := active(t)
				received := make(chan error)
				go func() { received <- c.Receive(&placertest.Collector{}, transport.Park) }()
				synctest.Wait()
				v.end(c)
				require.ErrorIs(t, <-received, v.want, "it was parked")
				require.ErrorIs(t, placertest.Receive(c, &placertest.Collector{Want: 1}), v.want)
				require.True(t, c.Append([]byte("x"), nil, true))
				require.ErrorIs(t, c.Flush(true), v.want)
				f.wantSent(t, "17 0001 0004")

				require.NoError(t, c.Close(), "the first end stays")
				c.Abort(errors.New("another"))
				require.ErrorIs(t, placertest.Receive(c, &placertest.Collector{Want: 1}), v.want)
				f.wantSent(t)
				close(f.lost)
				synctest.Wait()
				f.wantReleased(t, false)
			})
		})
	}
}

// TestSCTP_31_SessionWithAMessageBehindItsTerminateIsNotOver: its streams are not clean.
func TestSCTP_31_SessionWithAMessageBehindItsTerminateIsNotOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := active(t)
		f.says(16, "0002 41")
		f.says(17, "0001 0004")
		p := &placertest.Collector{}
		require.NoError(t, c.Receive(p, transport.Park))
		var violation *ViolationError
		require.ErrorAs(t, c.Receive(p, transport.Park), &violation)
		require.NoError(t, c.Close())
		close(f.lost)
		synctest.Wait()
		f.wantReleased(t, false)
	})
}

// TestBatchIsBounded by messages and by octets; what it takes is sent as it is.
func TestBatchIsBounded(t *testing.T) {
	for _, v := range []struct{ size, most int }{{1, batchLen}, {1022, batchSize / 1024}, {1448, batchSize / 1450}} {
		synctest.Test(t, func(t *testing.T) {
			c, f := active(t)
			n := 0
			for ; c.Append([]byte{byte(n)}, [][]byte{make([]byte, v.size-1)}, false); n++ {
				require.Less(t, n, v.most)
			}
			require.Equal(t, v.most, n)
			require.NoError(t, c.Flush(false))
			require.True(t, c.Append([]byte{byte(n)}, [][]byte{make([]byte, v.size-1)}, false), "there is room again")
			require.NoError(t, c.Flush(false))
			f.mu.Lock()
			require.Len(t, f.sent, n+1)
			for i, m := range f.sent {
				require.EqualValues(t, i+1, binary.BigEndian.Uint16(m.msg))
				require.Len(t, m.msg, ssnSize+v.size)
				require.Equal(t, byte(i), m.msg[ssnSize])
			}
			f.mu.Unlock()
			require.NoError(t, c.Close())
			close(f.lost)
		})
	}
}

func TestRequestIsAnsweredOnce(t *testing.T) {
	answers := map[string]func(r *Request) error{
		"Accept": func(r *Request) error { _, _, err := r.Accept(Options{}, 1, 1, nil); return err },
		"Reject": func(r *Request) error { return r.Reject(-1, -1, nil) },
		"Close":  func(r *Request) error { r.Close(); return nil },
	}
	for first, once := range answers {
		for second, twice := range answers {
			f := newFake()
			f.says(17, "0000 0001")
			r, err := ReadRequest(context.Background(), f)
			require.NoError(t, err)
			require.NoError(t, once(r))
			if err := twice(r); second != "Close" {
				require.ErrorIs(t, err, net.ErrClosed, "%s, then %s", first, second)
			}
			f.mu.Lock()
			require.Len(t, f.sent, 1, "%s, then %s", first, second)
			f.mu.Unlock()
		}
	}
}

// TestCloseWaitsForARefusal that another goroutine sends: what calls Close may end the association next.
func TestCloseWaitsForARefusal(t *testing.T) {
	f := &askedStream{fakeStream: newFake()}
	f.says(17, "0000 0001")
	r, err := ReadRequest(t.Context(), f)
	require.NoError(t, err)
	f.asks = func() { require.False(t, r.mu.TryLock(), "Close waits for this mutex") }
	require.NoError(t, r.Reject(-1, -1, nil))
	r.Close()
	f.wantSent(t, "17 0000 0003")
}

// An askedStream calls a function before each Send.
type askedStream struct {
	*fakeStream
	asks func()
}

func (s *askedStream) Send(ppid uint32, msg []byte, urgent bool) error {
	s.asks()
	return s.fakeStream.Send(ppid, msg, urgent)
}

// TestSCTP_29_TerminateDoesNotOvertakeTheAccept: only an acknowledgement shows that the initiator has it.
// Its segments may have been sent before.
func TestSCTP_29_TerminateDoesNotOvertakeTheAccept(t *testing.T) {
	for _, segments := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, f := passive(t)
			f.set(false, true)
			terminate := "0001 0004" // of either end
			if segments {
				f.says(16, "0001 41")
				require.NoError(t, placertest.Receive(c, &placertest.Collector{Want: 1}))
				flush(t, c, "first")
				f.wantSent(t, "16 0001 6669727374")
				terminate = "0002 0004"
			}
			require.NoError(t, c.CloseSend())
			synctest.Wait()
			f.wantSent(t)
			f.set(false, false)
			synctest.Wait()
			f.wantSent(t, "17 "+terminate)
			f.says(17, terminate)
			require.NoError(t, c.Close())
		})
	}
}

// TestTerminateOfAResponderWaitsForNoSegment that it has sent when the Accept was acknowledged.
func TestTerminateOfAResponderWaitsForNoSegment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := passive(t)
		flush(t, c, "first")
		f.set(false, true)
		flush(t, c, "second")
		f.wantSent(t, "16 0001 6669727374", "16 0002 7365636f6e64")
		require.NoError(t, c.CloseSend())
		f.wantSent(t, "17 0003 0004")
		f.says(17, "0001 0004")
		require.NoError(t, c.Close())
	})
}

// TestSCTP_29_TerminateIsNotSentWithoutTheAccept: the peer has not acknowledged the Accept. When it
// does, however late, it is told, or it would wait for ever.
func TestSCTP_29_TerminateIsNotSentWithoutTheAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := passive(t)
		f.set(false, true)
		require.NoError(t, c.Close())
		time.Sleep(2 * drainTime)
		synctest.Wait()
		f.wantSent(t)
		f.wantReleased(t, false)
		f.set(false, false)
		synctest.Wait()
		f.wantSent(t, "17 0001 0004")
	})
}

// TestSCTP_29_TerminateDoesNotOvertakeTheInitiate: the caller gives up before the peer is known to
// have it.
func TestSCTP_29_TerminateDoesNotOvertakeTheInitiate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		f := newFake()
		f.set(false, true)
		_, _, err := Connect(ctx, f, Options{Plain: true}, 1, 1, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		f.wantSent(t, "17 0000 0001")
		f.set(false, false)
		synctest.Wait()
		f.wantSent(t, "17 0001 0004")
		close(f.lost)
	})
}

// TestSCTP_31_TerminateIsSentBeforeTheStreamsAreGivenBack: the peer's Terminate comes, but not yet
// the acknowledgement of our Accept. That would be the next session's.
func TestSCTP_31_TerminateIsSentBeforeTheStreamsAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := passive(t)
		f.set(false, true)
		require.NoError(t, c.Close())
		synctest.Wait()
		f.wantSent(t)
		f.says(17, "0001 0004")
		synctest.Wait()
		f.wantReleased(t, true)
		f.wantSent(t, "17 0001 0004")
		f.set(false, false)
		synctest.Wait()
		f.wantSent(t)
	})
}

func TestDiscardKeepsTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := active(t)
		f.says(16, "0001 41")
		f.says(17, "0002 0004")
		require.ErrorIs(t, c.Discard(), io.EOF)
		require.ErrorIs(t, placertest.Receive(c, &placertest.Collector{Want: 1}), errDiscarded)
		require.NoError(t, c.Close())
	})
}

// TestReceiveTakesOneMessage: it cannot tell without waiting whether there is another.
func TestReceiveTakesOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := active(t)
		f.says(16, "0001 41")
		f.says(16, "0002 42")
		p := &placertest.Collector{}
		require.Equal(t, transport.ErrAgain, c.Receive(p, transport.NoWait))
		require.NoError(t, c.Receive(p, transport.Park))
		require.Equal(t, []string{"A"}, p.Got)
		p.Err = transport.ErrStall
		require.Equal(t, transport.ErrStall, c.Receive(p, transport.Block))
		p.Err = nil
		require.NoError(t, c.Receive(p, transport.Park), "what was held back")
		require.Equal(t, []string{"A", "B"}, p.Got)
		f.says(17, "0003 0004")
		require.NoError(t, c.Close())
	})
}

func TestWakeEndsAReceiveThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := active(t)
		received := make(chan error)
		go func() { received <- c.Receive(&placertest.Collector{}, transport.Park) }()
		synctest.Wait()
		c.Wake()
		require.Equal(t, transport.ErrWoken, <-received)
		c.Wake()
		require.Equal(t, transport.ErrWoken, c.Receive(&placertest.Collector{}, transport.Park), "a wake before the wait is not lost")
		f.says(16, "0001 41")
		require.NoError(t, c.Receive(&placertest.Collector{}, transport.Park), "and it is no end")
		f.says(17, "0002 0004")
		require.NoError(t, c.Close())
	})
}

// TestReceiveDoesNotWaitForTheEndOfAClosedSession: what Close leaves to be read is read
// meanwhile.
func TestReceiveDoesNotWaitForTheEndOfAClosedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := active(t)
		require.NoError(t, c.Close())
		synctest.Wait()
		start := time.Now()
		require.Equal(t, net.ErrClosed, c.Receive(&placertest.Collector{}, transport.Park))
		require.Equal(t, net.ErrClosed, c.Discard())
		require.Zero(t, time.Since(start))
		close(f.lost)
	})
}

// TestPeerEndsBeforeItHasAcknowledgedTheAccept: its Terminate has the same meaning, and ours is sent before
// the streams are given back, with which the association may end.
func TestPeerEndsBeforeItHasAcknowledgedTheAccept(t *testing.T) {
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, f := passive(t)
			f.set(false, true)
			require.NoError(t, c.CloseSend())
			if closed {
				require.NoError(t, c.Close())
			}
			synctest.Wait()
			f.wantSent(t)
			f.says(17, "0001 0004")
			if !closed {
				require.ErrorIs(t, placertest.Receive(c, &placertest.Collector{Want: 1}), io.EOF)
				require.NoError(t, c.Close())
			}
			synctest.Wait()
			f.wantSent(t, "17 0001 0004")
			f.wantReleased(t, true)
			f.set(false, false)
			synctest.Wait()
			f.wantSent(t)
		})
	}
}

// TestSCTP_31_ClosedSessionWhosePeerStillSends is read to its end, however long that takes.
func TestSCTP_31_ClosedSessionWhosePeerStillSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := active(t)
		require.NoError(t, c.Close())
		for _, segment := range []string{"0001 41", "0002 42", "0003 43"} { // as long as it takes
			time.Sleep(drainTime - time.Second)
			f.says(16, segment)
		}
		time.Sleep(drainTime - time.Second)
		f.says(17, "0004 0004")
		synctest.Wait()
		f.wantReleased(t, true)
	})
}

// TestSCTP_5_22_OtherProtocolsWithinASession: a message with another payload protocol identifier ends the session, although
// it has the number of the next segment.
func TestSCTP_5_22_OtherProtocolsWithinASession(t *testing.T) {
	for _, ppid := range []uint32{0, PPIDSegment - 1, PPIDControl + 1, PPIDSegment << 24} {
		synctest.Test(t, func(t *testing.T) {
			c, f := active(t)
			f.in <- sentMessage{ppid, octets("0001 41")}
			p := &placertest.Collector{Want: 1}
			err := placertest.Receive(c, p)
			require.ErrorAs(t, err, new(*ViolationError), "%d", ppid)
			require.Empty(t, p.Seqs, "%d", ppid)
			c.Abort(err)
			f.wantSent(t, "17 0001 0004")
			close(f.lost)
		})
	}
}
