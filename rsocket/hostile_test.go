package rsocket

import (
	"io"
	"math"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// TestRSK_14_15_PeersThatBreakTheProtocol: the connection ends with an error, what came before is read, and the
// peer gets a DISCONNECT.
func TestRSK_14_15_PeersThatBreakTheProtocol(t *testing.T) {
	for _, c := range []struct {
		name string
		does func(s *rawPeer)
		want string
	}{
		{"more octets than the halves have", func(s *rawPeer) { s.Send(s.message(wire.OpData, 8193)) }, "8193 octets where there is room for 8188"},
		{"all the octets there are", func(s *rawPeer) { s.Send(s.message(wire.OpData, wire.MaxData)) }, "536870911 octets"},
		{"more messages than credits", func(s *rawPeer) {
			for range 16 {
				s.Send(s.message(wire.OpData, 1))
			}
		}, "17 messages of data, more than the credits"},
		{"a slot that is too long", func(s *rawPeer) {
			s.Send(s.slot(1, wire.Slot{Length: wire.MaxHalf + 1}), s.message(wire.OpSGL, 64))
		}, "a slot of 1073741825 octets"},
		{"a slot beyond the end", func(s *rawPeer) {
			s.Send(s.slot(1, wire.Slot{Addr: math.MaxUint64, Length: 2}), s.message(wire.OpSGL, 64))
		}, "beyond the last tagged offset"},
		{"a limit that goes back", func(s *rawPeer) { s.Send(s.message(wire.OpSGL, 63)) }, "a limit of 63 credits, behind 64"},
		{"a limit that is too high", func(s *rawPeer) { s.Send(s.message(wire.OpSGL, 65)) }, "a limit of 65 credits"},
		{"op 1", func(s *rawPeer) { s.Send(s.message(1, 0)) }, "an unknown message: op 1"},
		{"op 3", func(s *rawPeer) { s.Send(s.message(3, 0)) }, "an unknown message: op 3"},
		{"op 5", func(s *rawPeer) { s.Send(s.message(5, 0)) }, "an unknown message: op 5"},
		{"an entry of an iomap", func(s *rawPeer) { s.Send(s.message(wire.OpIOMapSGL, 0)) }, "entry 0 of an iomap that has 0"},
		{"an unknown CTRL", func(s *rawPeer) { s.Send(s.message(wire.OpCtrl, 3)) }, "an unknown message: CTRL 3"},
		{"a message of three octets", func(s *rawPeer) {
			s.msn++
			s.Send(wiretest.Send(s.msn, 0, "abc"))
		}, "a message of 3 octets"},
		{"immediate data", func(s *rawPeer) {
			s.msn++
			s.Send(wiretest.Untagged(0x41, 0x48, 0, 0, s.msn, 0, "12345678"))
		}, "immediate data in place of a message"},
		{"data after SHUTDOWN", func(s *rawPeer) {
			s.Send(s.message(wire.OpCtrl, wire.CtrlShutdown), s.message(wire.OpData, 1))
		}, "1 octets after SHUTDOWN"},
		{"the other byte order", func(s *rawPeer) {
			s.msn++
			s.Send(wiretest.Send(s.msn, 0, swapped(wire.OpData, 1)))
		}, "room for 8188"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := meet(t, &small, itsPrivate)
				s.Send(s.write(0, "good"), s.message(wire.OpData, 4))
				s.wants(sgl(16))
				good := make([]byte, 4)
				_, err := io.ReadFull(s.conn, good)
				require.NoError(t, err)
				require.Equal(t, "good", string(good))
				c.does(s)
				synctest.Wait() // everything has come before the program reads, which would return credits
				var rest []byte
				read := make(chan struct{})
				go func() {
					defer close(read)
					rest, err = io.ReadAll(s.conn)
				}()
				s.wants(disconnect)
				s.WantEOF("the connection ends")
				s.CloseWrite()
				<-s.conn.done
				<-read
				if c.name == "data after SHUTDOWN" {
					_, again := s.conn.Read(make([]byte, 1))
					require.NoError(t, err)
					require.Equal(t, io.EOF, again, "the stream of the peer had ended before")
				} else {
					require.ErrorIs(t, err, ErrProtocol)
					require.ErrorContains(t, err, c.want)
				}
				require.LessOrEqual(t, len(rest), 15, "nothing that was bad is read")
				_, err = s.conn.Write([]byte("x"))
				require.ErrorIs(t, err, ErrProtocol)
			})
		})
	}
}

// TestRSK_15_AMessageThatIsTooLong for a receive of four octets.
func TestRSK_15_AMessageThatIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := meet(t, &small, itsPrivate)
		s.Send(wiretest.Send(1, 0, "hello"))
		s.WantTerminate("the message does not fit", 0x1205)
		s.CloseWrite()
		<-s.conn.done
		_, err := s.conn.Read(make([]byte, 1))
		var terminate *iwarp.TerminateError
		require.ErrorAs(t, err, &terminate)
	})
}

// TestRSK_15_PrivateDataThatIsRefused: the request is rejected without private data, and the Listener goes on.
func TestRSK_15_PrivateDataThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := listen(t, open(t), "pipe", &small)
		change := func(f func(p *wire.Private)) []byte {
			p := itsPrivate
			f(&p)
			return p.Append(nil)
		}
		version := itsPrivate.Append(nil)
		version[0] = 0
		for name, private := range map[string][]byte{
			"none": {}, "39 octets": itsPrivate.Append(nil)[:39], "version 0": version,
			"no slots":   change(func(p *wire.Private) { p.Table.Slots = 0 }),
			"65 slots":   change(func(p *wire.Private) { p.Table.Slots = 65 }),
			"no half":    change(func(p *wire.Private) { p.Half.Length = 0 }),
			"no credits": change(func(p *wire.Private) { p.Credits = 0 }),
		} {
			rest := wiretest.Hex("50 02 0000 8010 c010")
			rest[3] = byte(4 + len(private))
			p := wiretest.Dial(t, "pipe", l.Addr().String(), append(rest, private...))
			reply := p.Read(24)
			require.EqualValues(t, 0x20, reply[16]&0x20, "%s: the request is rejected", name)
			require.EqualValues(t, 4, reply[19], "%s: without private data", name)
			p.WantClosed("and the connection ends")
		}
		c, err := Dial(within(t), l.rnic, "pipe", l.Addr().String(), nil)
		require.NoError(t, err)
		accepted, err := l.AcceptConn()
		require.NoError(t, err)
		closeBoth(c, accepted)
	})
}

// TestRSK_1_AResponderThatIsNone of rsockets: the connection ends, and Dial says why.
func TestRSK_1_AResponderThatIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		addr := wiretest.Serve(t, func(p *wiretest.Peer) {
			defer close(ended)
			p.Read(64)
			p.Reply("50 02 0008 8010 8010", []byte("none")...)
			require.NoError(t, p.Conn.SetReadDeadline(time.Now().Add(time.Minute)))
			_, err := io.Copy(io.Discard, p.Conn)
			require.Error(t, err, "the connection is reset")
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
		})
		_, err := Dial(within(t), open(t), "pipe", addr, nil)
		require.ErrorIs(t, err, ErrProtocol)
		require.ErrorContains(t, err, "4 octets of private data in place of 40")
		<-ended
	})
}

// TestRSK_13_KeepAlive: a Write without octets, to STag 0, is ignored, and so is a KEEPALIVE in a Send.
func TestRSK_13_KeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := meet(t, &small, itsPrivate)
		for range 3 {
			s.Send(wiretest.Write(0, 0, ""))
		}
		s.Send(s.write(0, "hi"), s.message(wire.OpData, 2), wiretest.Write(0, 0, ""), s.message(wire.OpCtrl, wire.CtrlKeepAlive), s.message(wire.OpCtrl, wire.CtrlShutdown))
		got, err := io.ReadAll(s.conn)
		require.NoError(t, err)
		require.Equal(t, "hi", string(got))
	})
}

// TestRSK_15_APeerThatNeverReads blocks Write after as many octets as it has memory for.
func TestRSK_15_APeerThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := meet(t, &small, itsPrivate)
		s.Send(s.message(wire.OpSGL, 64))
		ended := s.endsWithDISCONNECT()
		require.NoError(t, s.conn.SetWriteDeadline(time.Now().Add(time.Second)))
		n, err := s.conn.Write(make([]byte, 1<<20))
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		require.True(t, timeout.Timeout())
		require.Equal(t, 4096, n, "its half")
		require.NoError(t, s.conn.Close(), "that was sent")
		<-ended
	})
}

// TestRSK_10_APeerThatGivesNoCredits gets DISCONNECT all the same, five seconds after Close: an entry of the iomap that waits for
// credits is lost.
func TestRSK_10_APeerThatGivesNoCredits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := small
		cfg.IOMap = 1
		s := meet(t, &cfg, mappedPrivate())
		s.Send(s.message(wire.OpSGL, 64))
		ended := s.endsWithDISCONNECT()
		require.NoError(t, s.conn.SetWriteDeadline(time.Now().Add(time.Second)))
		var err error
		for err == nil {
			_, err = s.conn.Write([]byte("x"))
		}
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "there are no credits")
		require.NoError(t, s.conn.SetWriteDeadline(time.Time{}))
		require.NoError(t, s.conn.Map(make([]byte, 8), 0))
		begin := time.Now()
		require.ErrorIs(t, s.conn.Close(), os.ErrDeadlineExceeded)
		require.Equal(t, linger, time.Since(begin))
		<-ended
	})
}

// TestRSK_15_APeerThatDoesNotReceive delays Close for five seconds, and Close returns an error, even if the network has taken everything
// that was written, and the peer nothing.
func TestRSK_15_APeerThatDoesNotReceive(t *testing.T) {
	for _, n := range []int{4, 1 << 19} {
		synctest.Test(t, func(t *testing.T) {
			private := itsPrivate
			private.Half.Length = 1 << 20
			s := meet(t, &Config{WriteBuffer: 1 << 20}, private)
			s.Send(s.message(wire.OpSGL, 64))
			sent, err := s.conn.Write(make([]byte, n))
			require.NoError(t, err, "the QP has it")
			require.Equal(t, n, sent)
			begin := time.Now()
			require.ErrorIs(t, s.conn.Close(), os.ErrDeadlineExceeded, "%d octets", n)
			require.GreaterOrEqual(t, time.Since(begin), linger)
		})
	}
}

// TestRSK_15_ThePeerEndsWithoutReceiving: Close returns an error if octets were not sent, and none if there were no octets.
func TestRSK_15_ThePeerEndsWithoutReceiving(t *testing.T) {
	for _, n := range []int{0, 1 << 19} {
		synctest.Test(t, func(t *testing.T) {
			private := itsPrivate
			private.Half.Length = 1 << 20
			s := meet(t, &Config{WriteBuffer: 1 << 20}, private)
			s.Send(s.message(wire.OpSGL, 64))
			_, err := s.conn.Write(make([]byte, n))
			require.NoError(t, err, "the QP has it")
			closed := make(chan error)
			go func() { closed <- s.conn.Close() }()
			synctest.Wait()
			require.NoError(t, s.Conn.Close())
			if err := <-closed; n == 0 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, syscall.ECONNRESET)
				require.NotErrorIs(t, err, net.ErrClosed, "which is the error of a second Close")
			}
		})
	}
}

// TestRSK_15_SGLsWithoutEnd cost the peer a message each, and this side nothing.
func TestRSK_15_SGLsWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := meet(t, &small, itsPrivate)
		for range 1000 {
			s.Send(s.slot(1, wire.Slot{Addr: 1, Length: 1}), s.message(wire.OpSGL, 64))
		}
		s.Send(s.write(0, "hi"), s.message(wire.OpData, 2), s.message(wire.OpCtrl, wire.CtrlShutdown))
		got, err := io.ReadAll(s.conn)
		require.NoError(t, err)
		require.Equal(t, "hi", string(got))
		_, err = s.conn.Write([]byte(strings.Repeat("x", 4097)))
		require.NoError(t, err)
		s.wants(sgl(16), 4096, 1)
	})
}

// TestRSK_1_ABigEndianInitiator gets its own byte order, in all directions.
func TestRSK_1_ABigEndianInitiator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		private := itsPrivate
		private.Flags |= wire.FlagNet
		s := meet(t, &small, private)
		require.Equal(t, private.Flags, s.told.Flags, "the Reply says the same")
		s.Send(s.slot(1, wire.Slot{Addr: 0x77, Key: 0x300, Length: 1}), s.message(wire.OpSGL, 64))
		s.WantSegment("the slot is big-endian", "c140 00000100 0000000000001010", wire.Slot{Addr: 4096, Key: s.told.Half.Key, Length: 4096}.Append(nil, wire.Big)...)
		s.WantSegment("and the message", "4143 00000000 00000000 00000001 00000000", 0x80, 0, 0, 16)
		_, err := s.conn.Write(make([]byte, 4097))
		require.NoError(t, err)
		s.wants(4096, 1)
	})
}
