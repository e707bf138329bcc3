package rsocket

import (
	"io"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// TestRSK_10_WhatIsQueuedIsSentWithoutACall: octets that the QP could not take when Write returned. That requires many messages without
// credits; here they are queued by hand.
func TestRSK_10_WhatIsQueuedIsSentWithoutACall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := meet(t, &small, itsPrivate)
		s.Send(s.message(wire.OpSGL, 64))
		_, err := s.conn.Write(make([]byte, 4096))
		require.NoError(t, err, "the half of the peer is full")
		s.wants(sgl(16), wire.NewMessage(wire.OpData, 4096))
		s.conn.mu.Lock()
		s.conn.stream.Queue(100)
		s.conn.pump()
		s.conn.passOn()
		s.conn.mu.Unlock()
		require.NoError(t, s.conn.CloseWrite())
		synctest.Wait()
		s.Send(s.slot(1, wire.Slot{Addr: 0x3000, Key: 0x300, Length: 4096}), s.message(wire.OpSGL, 65))
		s.wants(wire.NewMessage(wire.OpData, 100), shutdown)
	})
}

// TestRSK_8_WaitersHandOverToOneAnother: a deadline ends a goroutine that reads or one that writes, in either order,
// and the other one still gets what it waits for.
func TestRSK_8_WaitersHandOverToOneAnother(t *testing.T) {
	for _, first := range []string{"read", "write"} {
		t.Run(first, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := meet(t, &small, itsPrivate)
				s.Send(s.message(wire.OpSGL, 64))
				_, err := s.conn.Write(make([]byte, 4096))
				require.NoError(t, err)
				s.wants(sgl(16), wire.NewMessage(wire.OpData, 4096))
				var read, wrote error
				var calls sync.WaitGroup
				reads := func() { _, read = s.conn.Read(make([]byte, 1)) }
				writes := func() { _, wrote = s.conn.Write(make([]byte, 1)) }
				calls.Go(reads)
				synctest.Wait()
				calls.Go(writes)
				synctest.Wait()
				if first == "read" {
					require.NoError(t, s.conn.SetReadDeadline(time.Now()))
					synctest.Wait()
					s.Send(s.slot(1, wire.Slot{Addr: 0x3000, Key: 0x300, Length: 4096}), s.message(wire.OpSGL, 65))
					calls.Wait()
					require.ErrorIs(t, read, os.ErrDeadlineExceeded)
					require.NoError(t, wrote)
					return
				}
				require.NoError(t, s.conn.SetWriteDeadline(time.Now()))
				synctest.Wait()
				s.Send(s.write(0, "x"), s.message(wire.OpData, 1))
				calls.Wait()
				require.NoError(t, read)
				require.ErrorIs(t, wrote, os.ErrDeadlineExceeded)
			})
		})
	}
}

// TestRSK_8_BothWaitForOneTaker: a message for the goroutine that does not take completions reaches it.
func TestRSK_8_BothWaitForOneTaker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := meet(t, &small, itsPrivate)
		s.Send(s.message(wire.OpSGL, 64))
		_, err := s.conn.Write(make([]byte, 4096))
		require.NoError(t, err)
		var wrote error
		read := make(chan error, 1)
		var calls sync.WaitGroup
		calls.Go(func() { _, wrote = s.conn.Write(make([]byte, 1)) })
		synctest.Wait()
		calls.Go(func() {
			_, err := s.conn.Read(make([]byte, 1))
			read <- err
		})
		synctest.Wait()
		s.Send(s.write(0, "x"), s.message(wire.OpData, 1))
		require.NoError(t, <-read)
		s.Send(s.slot(1, wire.Slot{Addr: 0x3000, Key: 0x300, Length: 4096}), s.message(wire.OpSGL, 65))
		calls.Wait()
		require.NoError(t, wrote)
	})
	bubble(t, func(t *testing.T) {
		s := meet(t, &small, itsPrivate)
		s.Send(s.message(wire.OpSGL, 64))
		_, err := s.conn.Write(make([]byte, 4096))
		require.NoError(t, err)
		read := make(chan error, 1)
		go func() {
			_, err := s.conn.Read(make([]byte, 1))
			read <- err
		}()
		synctest.Wait()
		var wrote error
		var calls sync.WaitGroup
		calls.Go(func() { _, wrote = s.conn.Write(make([]byte, 1)) })
		synctest.Wait()
		s.Send(s.slot(1, wire.Slot{Addr: 0x3000, Key: 0x300, Length: 4096}), s.message(wire.OpSGL, 65))
		calls.Wait()
		require.NoError(t, wrote)
		s.Send(s.write(0, "x"), s.message(wire.OpData, 1))
		require.NoError(t, <-read)
	})
}

// A slowProgram is a reader and a writer of the program that wait until they may go on.
type slowProgram chan struct{}

func (s slowProgram) Write(p []byte) (int, error) { <-s; return len(p), nil }
func (s slowProgram) Read([]byte) (int, error)    { <-s; return 0, io.EOF }

// TestRSK_8_AProgramThatIsSlowHoldsUpItsSideAlone: WriteTo and ReadFrom take completions until they call the program. Messages
// for the other side that come while the program works reach it.
func TestRSK_8_AProgramThatIsSlowHoldsUpItsSideAlone(t *testing.T) {
	for name, c := range map[string]struct {
		slow  func(c *Conn, p slowProgram)
		other func(c *Conn) error
		first bool // the octets come first, and the room behind them
	}{
		"WriteTo": {
			slow:  func(c *Conn, p slowProgram) { _, _ = c.WriteTo(p) },
			other: func(c *Conn) error { _, err := c.Write(make([]byte, 1)); return err },
			first: true,
		},
		"ReadFrom": {
			slow:  func(c *Conn, p slowProgram) { _, _ = c.ReadFrom(p) },
			other: func(c *Conn) error { _, err := c.Read(make([]byte, 1)); return err },
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := meet(t, &small, itsPrivate)
				s.Send(s.message(wire.OpSGL, 64))
				_, err := s.conn.Write(make([]byte, 4096))
				require.NoError(t, err)
				p, done := make(slowProgram), make(chan error, 1)
				var calls sync.WaitGroup
				calls.Go(func() { c.slow(s.conn, p) })
				synctest.Wait()
				go func() { done <- c.other(s.conn) }()
				synctest.Wait()
				octets := func() { s.Send(s.write(0, "x"), s.message(wire.OpData, 1)) }
				room := func() {
					s.Send(s.slot(1, wire.Slot{Addr: 0x3000, Key: 0x300, Length: 4096}), s.message(wire.OpSGL, 65))
				}
				steps := []func(){room, octets}
				if c.first {
					steps = []func(){octets, room}
				}
				for _, comes := range steps {
					comes()
					synctest.Wait()
				}
				select {
				case err := <-done:
					require.NoError(t, err)
				default:
					require.Fail(t, "the other side waits for the program")
				}
				close(p)
				require.NoError(t, s.conn.SetReadDeadline(time.Unix(1, 0)))
				calls.Wait()
			})
		})
	}
}

// TestRSK_10_CloseCallsBackAReader that takes completions, and one that does not.
func TestRSK_10_CloseCallsBackAReader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := unclosedPair(t, open(t), "pipe", nil, nil)
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() {
				_, err := a.Read(make([]byte, 1))
				require.Error(t, err)
			})
		}
		synctest.Wait()
		closeBoth(a, b)
		calls.Wait()
	})
}

// TestRSK_8_ALargerHalfIsTold to a peer that has filled both, while the program waits for it.
func TestRSK_8_ALargerHalfIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := meet(t, &small, itsPrivate)
		full := string(make([]byte, 4096))
		reads := func(n int) {
			_, err := io.ReadFull(s.conn, make([]byte, n))
			require.NoError(t, err)
		}
		s.Send(s.write(0, full), s.message(wire.OpData, 4096), s.write(4096, full), s.message(wire.OpData, 4096))
		reads(4096)
		s.wants(sgl(16), sgl(17))
		reads(4096)
		s.wants(sgl(18))
		go func() {
			time.Sleep(time.Millisecond)
			s.Send(s.write(0, full), s.message(wire.OpData, 4096))
		}()
		reads(4096)
		larger := s.nextSlot()
		require.EqualValues(t, 8192, larger.Length)
		require.NotEqual(t, s.told.Half.Key, larger.Key)
		s.Send(s.write(4096, full), s.message(wire.OpData, 4096), s.writeTo(larger, full+full), s.message(wire.OpData, 8192))
		reads(4096 + 8192)
	})
}

// TestWhatComesAfterRoomWasToldIsTaken, even while the program does not read: if the peer's program ends meanwhile, it does not
// end the connection before its socket has sent all octets.
func TestWhatComesAfterRoomWasToldIsTaken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := meet(t, &small, itsPrivate)
		s.Send(s.write(0, string(make([]byte, 4096))), s.message(wire.OpData, 4096))
		_, err := io.ReadFull(s.conn, make([]byte, 4096))
		require.NoError(t, err)
		s.wants(sgl(16), sgl(17))
		s.Send(s.write(4096, "x"), s.message(wire.OpData, 1))
		synctest.Wait()
		s.conn.mu.Lock()
		defer s.conn.mu.Unlock()
		_, _, n := s.conn.stream.Readable()
		require.Equal(t, 1, n)
	})
}

// TestRSK_8_HalvesGrowUpToTheMaximum, and stay as they are if the RNIC has no MR for them.
func TestRSK_8_HalvesGrowUpToTheMaximum(t *testing.T) {
	rnic := open(t)
	m, err := newMemory(rnic, &Config{ReadBuffer: 8192, MaxReadBuffer: 40_000, WriteBuffer: 4096, Credits: 16}, wire.Little)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.release()) }()
	for _, want := range []uint32{8192, 16384, 20000} {
		at, ok := m.grow(1)
		require.True(t, ok)
		require.Equal(t, want, at.Length)
		require.Len(t, m.octets(1), int(want))
		require.Len(t, m.octets(0), 4096)
	}
	_, ok := m.grow(1)
	require.False(t, ok)
	_, ok = m.grow(0)
	require.True(t, ok)
	require.Len(t, m.octets(0), 8192)
	require.Nil(t, m.in, "both are replaced")
}
