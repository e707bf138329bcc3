package mpa

import (
	"bytes"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/placertest"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/transport"
)

func TestBatchIsBounded(t *testing.T) {
	for _, v := range []struct {
		what         string
		head         int
		payload      []int
		stage, crc   bool
		atLeast, max int // FPDUs
	}{
		{"1 MiB of large lent segments", 14, []int{60000}, false, false, 17, 17},
		{"1 MiB of large staged segments", 14, []int{60000}, true, false, 17, 17},
		{"half of it with digests", 14, []int{60000}, true, true, 9, 9},
		{"small ones are copied together", 18, []int{64}, false, true, 5000, 10000},
		{"many pieces", 18, []int{256, 256, 256, 256}, false, true, 50, 250},
	} {
		s := &script{}
		c := conn(s, Terms{CRC: v.crc})
		n, size := 0, 0
		var payload [][]byte
		for _, p := range v.payload {
			payload = append(payload, octets(p))
			size += p
		}
		for c.Append(octets(v.head), payload, v.stage) {
			n++
		}
		require.GreaterOrEqual(t, n, v.atLeast, v.what)
		require.LessOrEqual(t, n, v.max, v.what)
		require.LessOrEqual(t, len(c.out.pending()), batchPieces, v.what)
		require.LessOrEqual(t, c.out.bytes, c.most()+wholeSize(1), v.what)
		require.NoError(t, c.Flush(false))
		require.Nil(t, c.out, "the batch is given back")
		require.True(t, c.Append(octets(v.head), payload, v.stage), "there is room again")
	}
}

func TestAnEmptyBatchTakesAnySegment(t *testing.T) {
	s := &script{}
	c := conn(s, Terms{CRC: true, SendMarkers: true})
	var payload [][]byte
	for range 2500 {
		payload = append(payload, octets(2))
	}
	require.True(t, c.Append(octets(18), payload, false))
	require.False(t, c.Append(octets(18), [][]byte{octets(60000), octets(2), octets(2)}, false) &&
		c.Append(octets(18), payload, false), "a second such segment does not fit")
	require.NoError(t, c.Flush(false))
}

func TestFlushGoesOnWhereItStopped(t *testing.T) {
	for _, markers := range []bool{false, true} {
		for _, take := range []int{1, 3, 97, 600, 5000} {
			s := &script{take: take}
			c := conn(s, Terms{CRC: true, SendMarkers: markers})
			ref := reference{crc: true, markers: markers}
			var want []byte
			for n := range 40 { // segments are appended while others wait
				u := octets(14 + n*37)
				want = append(want, ref.stream(u)...)
				require.True(t, c.Append(u[:14], [][]byte{u[14:]}, n%2 == 0))
				if err := c.Flush(false); err != nil {
					require.ErrorIs(t, err, transport.ErrAgain)
				}
			}
			require.NoError(t, c.Flush(true))
			require.Equal(t, want, s.wire(), "%d octets at a time, Markers %t", take, markers)
			require.NoError(t, c.Flush(true), "nothing is left")
		}
	}
}

func TestStagedPayloadIsTheCallersAtOnce(t *testing.T) {
	s := &script{full: true}
	c := conn(s, Terms{CRC: true})
	head, payload := octets(14), octets(5000)
	require.True(t, c.Append(head, [][]byte{payload}, true))
	require.ErrorIs(t, c.Flush(false), transport.ErrAgain)
	clear(head)
	clear(payload)
	require.NoError(t, c.Flush(true))
	ref := reference{crc: true}
	require.Equal(t, ref.stream(append(octets(14), octets(5000)...)), s.wire())
}

func TestLentPayloadIsNotCopied(t *testing.T) {
	c := conn(&script{}, Terms{CRC: true})
	payload := octets(60000)
	require.True(t, c.Append(octets(14), [][]byte{payload}, false))
	require.Same(t, &payload[0], &c.out.pending()[1][0])
	require.Len(t, c.out.pending(), 3)
	require.True(t, c.Append(octets(14), [][]byte{payload}, false))
	require.Len(t, c.out.pending(), 5, "the CRC and the next header are one piece")
}

func TestKeepCopiesWhatIsLent(t *testing.T) {
	for _, markers := range []bool{false, true} {
		for _, take := range []int{1, 19, 20, 300, 2000, 70000, 140000} {
			s := &script{take: take}
			c := conn(s, Terms{CRC: true, SendMarkers: markers})
			ref := reference{crc: true, markers: markers}
			var want []byte
			var lent [][]byte
			lend := func(n int) {
				u := octets(14 + n)
				want = append(want, ref.stream(u)...)
				lent = append(lent, u)
				require.True(t, c.Append(u[:14], [][]byte{u[14:]}, false))
			}
			lend(50000)
			lend(5) // too short to be lent
			lend(60000)
			lend(60001)
			require.ErrorIs(t, c.Flush(false), transport.ErrAgain, "a part goes out")
			c.Stage()
			for _, u := range lent {
				clear(u)
			}
			lend(3000)
			require.NoError(t, c.Flush(true))
			require.Equal(t, want, s.wire(), "the lender may do what it likes after %d octets are out", take)
		}
	}
}

func TestStalledSegmentIsPresentedAgain(t *testing.T) {
	for _, markers := range []bool{false, true} {
		ref := reference{crc: true, markers: markers}
		s := &script{reads: [][]byte{ref.stream(mixed()...), ref.stream(mixed()...)}}
		c := conn(s, Terms{CRC: true, ReceiveMarkers: markers})
		var p collector
		placer := &p
		tries := 0
		p.refuse = func(uint64) error {
			if tries++; tries%3 != 0 {
				return transport.ErrStall
			}
			return nil
		}
		left := -1
		for {
			err := c.Receive(placer, [...]transport.Wait{transport.Park, transport.NoWait}[tries%2])
			if errors.Is(err, transport.ErrAgain) {
				break
			}
			if errors.Is(err, transport.ErrStall) && left >= 0 && tries%3 == 2 {
				require.Len(t, s.reads, left, "nothing is read while a segment is held back")
			}
			left = len(s.reads)
		}
		require.Equal(t, append(mixed(), mixed()...), p.ulpdus, "Markers %t", markers)
		for i, seq := range p.seqs {
			require.EqualValues(t, i, seq)
		}
	}
}

func TestMPA_33_44_BatchEndsBeforeWhatIsCorrupt(t *testing.T) {
	ref := reference{crc: true}
	wire := ref.stream(octets(20), octets(30), octets(40))
	wire[len(wire)-1] ^= 1
	c, p := conn(&script{reads: [][]byte{wire}}, Terms{CRC: true}), &collector{}
	var fault *transport.Fault
	require.ErrorAs(t, drain(c, p), &fault)
	require.Equal(t, transport.MPACRC, fault.Code)
	require.Equal(t, [][]byte{octets(20), octets(30)}, p.ulpdus, "what came before it is handed up")
	require.ErrorAs(t, c.Receive(p, transport.NoWait), &fault, "and nothing any more")
	require.Len(t, p.ulpdus, 2)
}

func TestIdleConnHoldsNoMemory(t *testing.T) {
	ref := reference{crc: true}
	wire := ref.stream(octets(60000), octets(60000))
	s := &script{reads: [][]byte{wire}}
	c, p := conn(s, Terms{CRC: true}), &collector{}
	require.ErrorIs(t, drain(c, p), transport.ErrAgain)
	require.Nil(t, c.in.class, "nothing is held when nothing is left")

	s.reads = [][]byte{ref.stream(octets(50))[:30]}
	require.ErrorIs(t, drain(c, p), transport.ErrAgain)
	require.Same(t, small, c.in.class, "a small part of an FPDU")

	s = &script{reads: [][]byte{wire[:50000]}}
	c = conn(s, Terms{CRC: true})
	require.ErrorIs(t, drain(c, p), transport.ErrAgain)
	require.Same(t, medium, c.in.class, "a large part of an FPDU")

	s = &script{reads: [][]byte{append(bytes.Clone(wire), wire[:50000]...)}}
	c = conn(s, Terms{CRC: true})
	c.bulk = true
	require.ErrorIs(t, drain(c, p), transport.ErrAgain)
	require.Same(t, medium, c.in.class, "a large part of an FPDU, at the end of a large buffer")

	s = &script{reads: [][]byte{wire, wire[:20]}}
	c = conn(s, Terms{CRC: true})
	got := &collector{}
	got.stop = func() bool { return len(got.ulpdus) == 2 }
	require.NoError(t, placertest.Receive(c, got))
	s.before = func() { require.Nil(t, c.in.class, "once it is armed, another goroutine may read") }
	require.True(t, c.Arm(func() {}))
	require.Nil(t, c.in.class, "nothing is held when a waiter leaves")
}

func TestAWaiterReadsLittleUntilMuchComes(t *testing.T) {
	ref := reference{crc: true}
	s := &script{}
	for range 3 {
		s.reads = append(s.reads, ref.stream(octets(64)))
	}
	c, p := conn(s, Terms{CRC: true}), &collector{}
	p.stop = func() bool { return len(p.ulpdus) >= 3 }
	require.NoError(t, placertest.Receive(c, p))
	require.Equal(t, smallBuffer, s.longest)

	for range 100 {
		s.reads = append(s.reads, ref.stream(octets(60000)))
	}
	p.stop = func() bool { return len(p.ulpdus) >= 103 }
	require.NoError(t, placertest.Receive(c, p))
	require.Greater(t, s.longest, mediumBuffer)
	require.Len(t, p.ulpdus, 103)
}

// TestABlockIsReadAtOnce: a waiter that gets 4 KiB at a time makes one call for each.
func TestABlockIsReadAtOnce(t *testing.T) {
	ref := reference{crc: true}
	s := &script{}
	for range 5 {
		s.reads = append(s.reads, ref.stream(octets(14+4096), octets(38)))
	}
	c, p := conn(s, Terms{CRC: true}), &collector{}
	for n := 2; n <= 10; n += 2 {
		p.stop = func() bool { return len(p.ulpdus) == n }
		require.NoError(t, placertest.Receive(c, p))
		require.Len(t, s.reads, 5-n/2)
	}
	require.Equal(t, smallBuffer, s.longest)
}

// TestWhatFillsTheReadBufferIsALot: also if a part of it was held before.
func TestWhatFillsTheReadBufferIsALot(t *testing.T) {
	ref := reference{crc: true}
	var ulpdus [][]byte
	for range 100 {
		ulpdus = append(ulpdus, octets(1500))
	}
	wire := ref.stream(ulpdus...)
	s := &script{reads: [][]byte{wire[:1000], wire[1000:]}}
	c, p := conn(s, Terms{CRC: true}), &collector{}
	p.stop = func() bool { return len(p.ulpdus) == 100 }
	require.NoError(t, placertest.Receive(c, p))
	require.Greater(t, s.longest, mediumBuffer)
}

func TestWakeEndsAReceiveThatWaits(t *testing.T) {
	converse(t, func(t *testing.T, s transport.Stream, p *peer) {
		c := newConn(s, Options{}, &Terms{CRC: true})
		done := make(chan error)
		go func() { done <- c.Receive(&collector{}, transport.Park) }()
		synctest.Wait()
		c.Wake()
		c.Wake()
		require.Equal(t, transport.ErrWoken, <-done)
		require.Nil(t, c.in.class, "nothing is held")
		c.Wake()
		require.Equal(t, transport.ErrWoken, c.Receive(&collector{}, transport.Park), "a wake before the wait is not lost")
		ref := reference{crc: true}
		p.send(ref.stream(octets(20)))
		got := &collector{}
		require.NoError(t, c.Receive(got, transport.Park), "and ends nothing but a wait")
		require.Len(t, got.ulpdus, 1)
	})
}

func TestReceiveThatMustNotWait(t *testing.T) {
	c := conn(&script{}, Terms{})
	require.ErrorIs(t, c.Receive(&collector{}, transport.NoWait), transport.ErrAgain)
	s := &script{copies: true, reads: [][]byte{octets(20)}}
	c = conn(s, Terms{})
	require.ErrorIs(t, c.Receive(&collector{}, transport.NoWait), transport.ErrAgain, "a stream that copies cannot tell")
	require.Zero(t, s.longest, "and is not asked")
}

// TestReceiveReadsOnce: also where more has come, and where it has waited.
func TestReceiveReadsOnce(t *testing.T) {
	for _, wait := range []transport.Wait{transport.NoWait, transport.Park, transport.Block} {
		for _, bulk := range []bool{false, true} {
			s, ref := &script{}, reference{crc: true}
			for range 3 {
				s.reads = append(s.reads, ref.stream(octets(20), octets(30)))
			}
			s.reads = append(s.reads, ref.stream(octets(40))[:20])
			c, p := conn(s, Terms{CRC: true}), &collector{}
			c.bulk = bulk
			for n := 1; n <= 3; n++ {
				require.NoError(t, c.Receive(p, wait))
				require.Len(t, p.ulpdus, 2*n)
			}
			require.NoError(t, c.Receive(p, wait), "something has come, if no whole segment")
			require.Len(t, p.ulpdus, 6)
			require.ErrorIs(t, c.Receive(p, wait), transport.ErrAgain, "the stream has no more")
		}
	}
}

// TestHeldBackSegmentIsAReadsWorth: it is presented, with what has come after it, and then
// nothing is read or waited for.
func TestHeldBackSegmentIsAReadsWorth(t *testing.T) {
	ref := reference{crc: true}
	for _, wait := range []transport.Wait{transport.NoWait, transport.Park, transport.Block} {
		s := &script{reads: [][]byte{ref.stream(octets(20), octets(30)), ref.stream(octets(40))}}
		c, p := conn(s, Terms{CRC: true}), &collector{refuse: func(uint64) error { return transport.ErrStall }}
		require.ErrorIs(t, c.Receive(p, wait), transport.ErrStall)
		require.ErrorIs(t, c.Receive(p, wait), transport.ErrStall)
		p.refuse = nil
		require.NoError(t, c.Receive(p, wait))
		require.Len(t, p.ulpdus, 2)
		require.Len(t, s.reads, 1)
		require.NoError(t, c.Receive(p, wait))
		require.Len(t, p.ulpdus, 3)
	}
}

// TestConnThatIsLeftHoldsLittle: an armed one has no more memory than it needs.
func TestConnThatIsLeftHoldsLittle(t *testing.T) {
	ref := reference{crc: true}
	wire := ref.stream(octets(60000), octets(60000), octets(60000), octets(50))
	s := &script{reads: [][]byte{wire[:60100], wire[60100:]}}
	c, p := conn(s, Terms{CRC: true}), &collector{}
	c.bulk = true
	require.NoError(t, c.Receive(p, transport.Park))
	require.Same(t, large, c.in.class, "more may come at once")
	require.True(t, c.Arm(func() {}))
	require.Same(t, small, c.in.class, "a small part of an FPDU")
	require.NoError(t, c.Receive(p, transport.Park))
	require.True(t, c.Arm(func() {}))
	require.Nil(t, c.in.class, "nothing")
	s.end = transport.ErrWoken
	require.Equal(t, transport.ErrWoken, c.Receive(p, transport.Park))
	require.Nil(t, c.in.class, "nothing is held when a waiter was woken")
	s.end = nil
	require.ErrorIs(t, c.Receive(p, transport.Park), transport.ErrAgain, "and that was no end")
}

// TestSmallReadsWithoutWaiting take a small buffer: many connections that are looked at in turn do not each need the memory of
// a large one.
func TestSmallReadsWithoutWaiting(t *testing.T) {
	ref := reference{crc: true}
	s := &script{reads: [][]byte{ref.stream(octets(30)), ref.stream(octets(60000), octets(40))}}
	c, p := conn(s, Terms{CRC: true}), &collector{}
	require.NoError(t, c.Receive(p, transport.NoWait))
	require.Same(t, small, c.in.class, "little has come so far")
	require.NoError(t, c.Receive(p, transport.NoWait))
	require.Len(t, p.ulpdus, 1, "a part of a large FPDU fills it")
	require.NoError(t, c.Receive(p, transport.NoWait))
	require.Len(t, p.ulpdus, 3)
	require.Same(t, large, c.in.class)
}

func TestConnPassesOnToItsStream(t *testing.T) {
	s := &script{secure: true}
	c := conn(s, Terms{CRC: true})
	require.True(t, c.Arm(func() {}))
	require.NotNil(t, s.armed)
	c.Disarm()
	require.Nil(t, s.armed)
	c.Wake()
	require.Equal(t, 1, s.woken)
	require.Equal(t, transport.Caps{Digest: true, Secure: true}, c.Caps())
	require.Equal(t, "script", c.Path())
	require.Equal(t, s.LocalAddr(), c.LocalAddr())
	require.Equal(t, s.RemoteAddr(), c.RemoteAddr())
}

func TestNothingIsAllocatedPerSegment(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	for _, markers := range []bool{false, true} {
		s := &steady{wire: func() []byte {
			ref := reference{crc: true, markers: markers}
			return ref.stream(octets(508), octets(4096-508-3*(2+4)-8*4-2)) // whole Marker intervals
		}()}
		terms := &Terms{CRC: true, SendMarkers: markers, ReceiveMarkers: markers}
		c := newConn(s, Options{}, terms)
		head, payload := octets(14), [][]byte{octets(3000), octets(100)}
		require.Zero(t, testing.AllocsPerRun(200, func() {
			if !c.Append(head, payload, false) || !c.Append(head, payload, true) || c.Flush(false) != nil {
				panic("Append or Flush failed")
			}
		}), "sending, Markers %t", markers)

		p := &placertest.Counter{}
		require.Zero(t, testing.AllocsPerRun(200, func() {
			c.dec.pos = 0
			if err := c.Receive(p, transport.NoWait); err != nil {
				panic(err)
			}
		}), "receiving, Markers %t", markers)
		require.Equal(t, -2*201, p.Left)
	}
	runtime.GC() // the pools
}

// steady takes everything and always brings the same octets.
type steady struct {
	script
	wire []byte
}

func (s *steady) Read(p []byte, _ transport.Wait) (int, error) { return copy(p, s.wire), nil }

func (s *steady) Write(bufs [][]byte, _ bool) (n int, err error) {
	for _, b := range bufs {
		n += len(b)
	}
	return n, nil
}
