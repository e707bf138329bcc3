package rsocket

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// TestRSK_10_CloseWrite: each side reads the rest, and io.EOF behind it; the second side to stop disconnects.
func TestRSK_10_CloseWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := pair(t, "pipe", nil, nil)
		_, err := a.Write([]byte("question"))
		require.NoError(t, err)
		require.NoError(t, a.CloseWrite())
		_, err = a.Write([]byte("x"))
		require.ErrorIs(t, err, io.ErrClosedPipe)
		got, err := io.ReadAll(b)
		require.NoError(t, err)
		require.Equal(t, "question", string(got))
		go func() {
			_, _ = b.Write(bytes.Repeat([]byte("answer"), 80_000))
			_ = b.CloseWrite()
		}()
		got, err = io.ReadAll(a)
		require.NoError(t, err)
		require.Len(t, got, 480_000)
		_, err = b.Write([]byte("x"))
		require.ErrorIs(t, err, io.ErrClosedPipe)
		require.NoError(t, b.Close())
		require.NoError(t, a.Close())
	})
}

// TestRSK_10_CloseWriteOnTheWire is SHUTDOWN, or DISCONNECT if the peer stopped before.
func TestRSK_10_CloseWriteOnTheWire(t *testing.T) {
	for _, second := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			s := meet(t, &small, itsPrivate)
			want := shutdown
			s.Send(s.message(wire.OpSGL, 64))
			if second {
				s.Send(s.message(wire.OpCtrl, wire.CtrlShutdown))
				_, err := s.conn.Read(make([]byte, 1))
				require.Equal(t, io.EOF, err)
				want = disconnect
			}
			_, err := s.conn.Write([]byte("last"))
			require.NoError(t, err)
			require.NoError(t, s.conn.CloseWrite())
			s.wants(sgl(16), 4, want)
			s.WantIdle("the connection is the peer's to end, or Close's", time.Minute)
			if !second {
				s.Send(s.write(0, "rest"), s.message(wire.OpData, 4), s.message(wire.OpCtrl, wire.CtrlDisconnect))
				got, err := io.ReadAll(s.conn)
				require.NoError(t, err)
				require.Equal(t, "rest", string(got))
			}
		})
	}
}

// TestRSK_10_CloseAfterThePeer waits for nothing, even though no completion tells that what was written has been sent.
func TestRSK_10_CloseAfterThePeer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := unclosedPair(t, open(t), "pipe", nil, nil)
		_, err := a.Write([]byte("little"))
		require.NoError(t, err)
		ended := make(chan error)
		go func() { ended <- b.Close() }()
		_, err = a.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		require.NoError(t, a.Close())
		require.NoError(t, <-ended)
	})
}

// TestRSK_10_CloseOnTheWire is DISCONNECT behind what was written, and the end of the connection.
func TestRSK_10_CloseOnTheWire(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := meet(t, &small, itsPrivate)
		_, err := s.conn.Write([]byte("last"))
		require.NoError(t, err)
		closed := make(chan error, 1)
		go func() { closed <- s.conn.Close() }()
		s.Send(s.message(wire.OpSGL, 64), s.message(wire.OpSGL, 64))
		s.wants(sgl(16), 4, disconnect)
		s.WantEOF("the connection ends")
		s.CloseWrite()
		require.NoError(t, <-closed)
		_, err = s.conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = s.conn.Write(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, s.conn.Close(), net.ErrClosed)
		require.ErrorIs(t, s.conn.CloseWrite(), net.ErrClosed)
		require.ErrorIs(t, s.conn.SetDeadline(time.Time{}), net.ErrClosed)
	})
}

// TestRSK_10_ThePeerDisconnects: what came is read, then io.EOF; Write fails.
func TestRSK_10_ThePeerDisconnects(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := meet(t, &small, itsPrivate)
		s.Send(s.write(0, "last"), s.message(wire.OpData, 4), s.message(wire.OpCtrl, wire.CtrlDisconnect))
		got, err := io.ReadAll(s.conn)
		require.NoError(t, err)
		require.Equal(t, "last", string(got))
		_, err = s.conn.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		s.CloseWrite()
		require.NoError(t, s.conn.Close())
	})
}

// TestRSK_10_ThePeerDisconnectsAndDoesNotEnd its half: that takes time, and is no failure, since the peer needs nothing more.
func TestRSK_10_ThePeerDisconnectsAndDoesNotEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := meet(t, &small, itsPrivate)
		s.Send(s.message(wire.OpCtrl, wire.CtrlDisconnect))
		_, err := s.conn.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		begin := time.Now()
		require.NoError(t, s.conn.Close())
		require.Positive(t, time.Since(begin))
	})
}

// TestRSK_10_CloseSendsWhatThePeerIsSlowToRead, and does not wait for that.
func TestRSK_10_CloseSendsWhatThePeerIsSlowToRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := pair(t, "pipe", nil, nil)
		const n = 200_000
		_, err := a.Write(make([]byte, n))
		require.NoError(t, err)
		got := make(chan int64, 1)
		go func() {
			_, err := b.Write(make([]byte, 4*n))
			if err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Error(err)
			}
			all, err := io.Copy(io.Discard, b)
			if err != nil {
				t.Error(err)
			}
			got <- all
		}()
		require.NoError(t, a.Close())
		require.EqualValues(t, n, <-got)
	})
}

// TestRSK_11_TheConnectionEndsWithoutAWord: everything that came is read, and then an error is returned.
func TestRSK_11_TheConnectionEndsWithoutAWord(t *testing.T) {
	for _, c := range []struct {
		name    string
		lenient bool
		ends    func(s *rawPeer)
		want    func(t *testing.T, err error)
	}{
		{"FIN", false, func(s *rawPeer) { s.CloseWrite() }, func(t *testing.T, err error) {
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		}},
		{"FIN, lenient", true, func(s *rawPeer) { s.CloseWrite() }, func(t *testing.T, err error) {
			require.NoError(t, err)
		}},
		{"reset, lenient", true, func(s *rawPeer) { s.Abort() }, func(t *testing.T, err error) {
			require.Error(t, err)
			require.NotErrorIs(t, err, io.ErrUnexpectedEOF)
		}},
		{"Terminate", false, func(s *rawPeer) {
			s.SendHex("a Terminate", "4147 00000000 00000002 00000001 00000000 0002 0000")
			s.CloseWrite()
		}, func(t *testing.T, err error) {
			var terminate *iwarp.TerminateError
			require.ErrorAs(t, err, &terminate)
			require.True(t, terminate.Remote)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cfg := small
				cfg.LenientEOF = c.lenient
				s := meet(t, &cfg, itsPrivate)
				for i := range 10 {
					s.Send(s.write(uint64(10*i), "0123456789"), s.message(wire.OpData, 10))
				}
				synctest.Wait()
				c.ends(s)
				<-s.conn.done
				got, err := io.ReadAll(s.conn)
				require.Equal(t, bytes.Repeat([]byte("0123456789"), 10), got)
				c.want(t, err)
				require.NotErrorIs(t, err, net.ErrClosed, "this side has not closed it")
				_, err = s.conn.Write([]byte("x"))
				require.Error(t, err)
				require.NotErrorIs(t, err, net.ErrClosed)
			})
		})
	}
}

// TestRSK_9_Deadlines end a call that waits, and leave the stream intact.
func TestRSK_9_Deadlines(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := pair(t, "pipe", nil, nil)
		begin := time.Now()
		require.NoError(t, a.SetReadDeadline(begin.Add(time.Second)))
		_, err := a.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, time.Second, time.Since(begin))

		require.NoError(t, a.SetWriteDeadline(begin.Add(2*time.Second)))
		sent := bytes.Repeat([]byte("0123456789"), 100_000)
		n, err := a.Write(sent)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 2*time.Second, time.Since(begin))
		require.Equal(t, 256<<10, n, "what the memory of the peer takes")

		require.NoError(t, a.SetDeadline(time.Time{}))
		rest := make(chan error, 1)
		go func() {
			_, err := a.Write(sent[n:])
			rest <- errors.Join(err, a.CloseWrite())
		}()
		got, err := io.ReadAll(b)
		require.NoError(t, err)
		require.Equal(t, sent, got)
		require.NoError(t, <-rest)

		_, err = b.Write([]byte("x"))
		require.NoError(t, err)
		_, err = a.Read(make([]byte, 1))
		require.NoError(t, err, "the deadline is gone")
	})
}

// TestRSK_9_ADeadlineThatIsReplaced does not end a wait.
func TestRSK_9_ADeadlineThatIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := pair(t, "pipe", nil, nil)
		require.NoError(t, a.SetReadDeadline(time.Now().Add(time.Second)))
		go func() {
			time.Sleep(500 * time.Millisecond)
			if err := a.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			if _, err := b.Write([]byte("x")); err != nil {
				t.Error(err)
			}
		}()
		n, err := a.Read(make([]byte, 2))
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
}
