package recordpipe

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/placertest"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/transport"
)

// collector is a Placer that keeps the segments it gets.
type collector struct {
	transport.NoPrediction
	segs []string
	seqs []uint64
	err  error       // what Segment returns
	stop func() bool // what Enough returns; nil: whether something has come
}

func (c *collector) Segment(seq uint64, ulpdu []byte) error {
	c.seqs = append(c.seqs, seq)
	c.segs = append(c.segs, string(ulpdu))
	return c.err
}

func (c *collector) Segments(seq uint64, batch transport.SegmentBatch) error {
	return transport.EachSegment(c, seq, batch)
}

func (c *collector) Enough() bool {
	if c.stop != nil {
		return c.stop()
	}
	return len(c.segs) > 0
}

func appendAll(t *testing.T, l transport.LLP, segs ...string) {
	t.Helper()
	for _, s := range segs {
		require.True(t, l.Append([]byte(s[:1]), [][]byte{[]byte(s[1:])}, true), "the batch takes %q", s)
	}
}

func flushAll(t *testing.T, l transport.LLP, segs ...string) {
	t.Helper()
	appendAll(t, l, segs...)
	require.NoError(t, l.Flush(false), "the network takes the batch")
}

func TestKeepsBoundaries(t *testing.T) {
	a, b := New(Options{})
	defer a.Abort(nil)
	c := &collector{}
	require.Equal(t, transport.ErrAgain, b.Receive(c, transport.NoWait), "nothing has come")
	flushAll(t, a, "one", "2")
	flushAll(t, a, "three")
	require.NoError(t, b.Receive(c, transport.NoWait), "segments are delivered")
	require.Equal(t, []string{"one", "2", "three"}, c.segs, "one by one")
	require.Equal(t, []uint64{0, 1, 2}, c.seqs, "with the sender's order")
	require.Equal(t, transport.ErrAgain, b.Receive(c, transport.NoWait), "all was delivered")

	require.Equal(t, 1452, a.MaxULPDU(), "the size is Ethernet's")
	require.Equal(t, transport.Caps{}, a.Caps(), "all is in order")
	require.Equal(t, a.LocalAddr(), b.RemoteAddr(), "the ends agree on the addresses")
	require.Equal(t, "records", b.LocalAddr().Network(), "the network has a name")
	require.False(t, a.Arm(func() {}), "a goroutine must stay in Receive")
	a.Disarm()
}

func TestCopiesAtFlushUnlessStaged(t *testing.T) {
	a, b := New(Options{})
	defer a.Abort(nil)
	head, payload := []byte("h"), []byte("payload")
	require.True(t, a.Append(head, [][]byte{payload}, true), "a staged segment")
	require.True(t, a.Append(head, [][]byte{payload, nil, payload}, false), "a segment by reference")
	copy(head, "x")
	copy(payload, "changed")
	require.NoError(t, a.Flush(false), "both go out")
	c := &collector{}
	require.NoError(t, b.Receive(c, transport.NoWait), "both arrive")
	require.Equal(t, []string{"hpayload", "hchangedchanged"}, c.segs, "only what is staged was copied at once")
}

func TestBatchIsBounded(t *testing.T) {
	a, _ := New(Options{Batch: 2})
	defer a.Abort(nil)
	appendAll(t, a, "1", "2")
	require.False(t, a.Append([]byte("3"), nil, true), "the batch is full")
	require.NoError(t, a.Flush(false), "it goes out")
	appendAll(t, a, "3")
}

func TestLimit(t *testing.T) {
	a, b := New(Options{Limit: 10})
	defer a.Abort(nil)
	flushAll(t, a, strings.Repeat("x", 50))
	appendAll(t, a, "12345", "67890", "more")
	require.Equal(t, transport.ErrAgain, a.Flush(false), "a segment beyond the limit passed alone, the next waits")
	flushed := make(chan error)
	go func() { flushed <- a.Flush(true) }()
	c := &collector{stop: func() bool { return false }}
	received := make(chan error)
	go func() { received <- placertest.Receive(b, c) }()
	require.NoError(t, <-flushed, "the waiting flush ends when the peer takes segments")
	require.NoError(t, a.CloseSend(), "the sending half closes")
	require.Equal(t, io.EOF, <-received, "the end comes last")
	require.Equal(t, []string{"12345", "67890", "more"}, c.segs[1:], "nothing is lost or repeated")
}

func TestReorders(t *testing.T) {
	const window, count = 8, 1000
	order := func(seed uint64) []uint64 {
		a, b := New(Options{Window: window, Seed: seed, Batch: count})
		defer a.Abort(nil)
		require.True(t, a.Caps().OutOfOrder, "the pipe says that it reorders")
		for i := range count {
			require.True(t, a.Append(binary.BigEndian.AppendUint32(nil, uint32(i)), nil, true), "appended")
		}
		require.NoError(t, a.Flush(false), "flushed")
		require.NoError(t, a.CloseSend(), "ended")
		c := &collector{stop: func() bool { return false }}
		require.Equal(t, io.EOF, placertest.Receive(b, c), "all arrive")
		require.Len(t, c.seqs, count, "nothing is lost")
		for i, seq := range c.seqs {
			require.EqualValues(t, binary.BigEndian.Uint32([]byte(c.segs[i])), seq, "a segment keeps its number")
		}
		return c.seqs
	}
	got := order(1)
	require.Equal(t, got, order(1), "a seed is an order")
	require.NotEqual(t, got, order(2), "another seed is another order")
	overtaken := 0
	lowest, seen := uint64(0), make([]bool, count)
	for _, seq := range got {
		require.Less(t, seq, lowest+window, "a segment overtakes only within the window")
		require.False(t, seen[seq], "a segment comes once")
		seen[seq] = true
		if seq != lowest {
			overtaken++
		}
		for lowest < count && seen[lowest] {
			lowest++
		}
	}
	require.Greater(t, overtaken, count/4, "many segments overtake")
}

func TestStall(t *testing.T) {
	a, b := New(Options{Window: 4, Seed: 3})
	defer a.Abort(nil)
	flushAll(t, a, "1", "2", "3", "4")
	c := &collector{err: transport.ErrStall}
	require.Equal(t, transport.ErrStall, placertest.Receive(b, c), "the transport.Placer's error is returned")
	require.Equal(t, transport.ErrStall, b.Receive(c, transport.NoWait), "again")
	require.Equal(t, c.segs[0], c.segs[1], "the same segment is presented again")
	c.err = nil
	require.NoError(t, b.Receive(c, transport.NoWait), "the rest is delivered")
	require.Equal(t, c.segs[0], c.segs[2], "beginning with the segment that was held back")
	require.Len(t, c.segs, 6, "each one once")
}

func TestReadIsAsLongAsAsked(t *testing.T) {
	a, b := New(Options{Read: 2})
	defer a.Abort(nil)
	flushAll(t, a, "1", "2", "3")
	for _, want := range [][]string{{"1", "2"}, {"3"}} {
		c := &collector{}
		require.NoError(t, b.Receive(c, transport.NoWait))
		require.Equal(t, want, c.segs)
	}
}

func TestHandsUpOneReadsWorth(t *testing.T) {
	a, b := New(Options{Batch: 3 * defaultRead})
	defer a.Abort(nil)
	for range 2 * defaultRead {
		appendAll(t, a, "x")
	}
	require.NoError(t, a.Flush(false))
	for n := 1; n <= 2; n++ {
		c := &collector{}
		require.NoError(t, b.Receive(c, [...]transport.Wait{transport.Park, transport.NoWait}[n-1]))
		require.Len(t, c.segs, defaultRead)
	}
	flushAll(t, a, "held back")
	require.Equal(t, transport.ErrStall, b.Receive(&collector{err: transport.ErrStall}, transport.Park))
	require.NoError(t, b.Receive(&collector{}, transport.Park), "what was held back is all that has come, and nothing is waited for")
	require.Equal(t, transport.ErrAgain, b.Receive(&collector{}, transport.NoWait))
}

func TestErrorEndsDelivery(t *testing.T) {
	a, b := New(Options{Limit: 1})
	defer a.Abort(nil)
	flushAll(t, a, "1")
	bad := errors.New("bad segment")
	c := &collector{err: bad}
	require.Equal(t, bad, b.Receive(c, transport.NoWait), "the transport.Placer's error is returned")
	c.err = nil
	flushAll(t, a, "2")
	require.Equal(t, bad, placertest.Receive(b, c), "nothing is delivered after it")
	require.Len(t, c.segs, 1, "nothing is delivered after it")

	discarded := make(chan error)
	go func() { discarded <- b.Discard() }()
	for range 3 {
		appendAll(t, a, "3")
		require.NoError(t, a.Flush(true), "the peer may still send")
	}
	require.NoError(t, a.CloseSend(), "and end")
	require.Equal(t, io.EOF, <-discarded, "what is discarded is read to the end")
}

func TestWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := New(Options{})
		defer a.Abort(nil)
		done := make(chan error)
		go func() { done <- b.Receive(&collector{}, transport.Park) }()
		synctest.Wait()
		b.Wake()
		b.Wake()
		require.Equal(t, transport.ErrWoken, <-done, "a Receive that waits ends")
		b.Wake()
		require.Equal(t, transport.ErrWoken, b.Receive(&collector{}, transport.Park), "a wake before the wait is not lost")
		flushAll(t, a, "1")
		b.Wake()
		require.NoError(t, b.Receive(&collector{}, transport.Park), "what has come is handed up first")
		require.Equal(t, transport.ErrWoken, b.Receive(&collector{}, transport.Park), "and the wake still is not lost")
	})
}

func TestEndsParkedCalls(t *testing.T) {
	cause := errors.New("cause")
	for _, tc := range []struct {
		name        string
		end         func(l transport.LLP)
		mine, peers []error
	}{
		{"close", func(l transport.LLP) { _ = l.Close() }, []error{net.ErrClosed}, []error{syscall.ECONNRESET}},
		{"abort", func(l transport.LLP) { l.Abort(cause) }, []error{net.ErrClosed, cause}, []error{syscall.ECONNRESET}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := New(Options{Limit: 1})
				flush, received := make(chan error, 1), make(chan error, 1)
				for _, l := range []transport.LLP{a, b} {
					flushAll(t, l, "1")
					appendAll(t, l, "2")
				}
				go func() { flush <- a.Flush(true) }()
				go func() { received <- placertest.Receive(a, &collector{err: transport.ErrStall}) }()
				require.ErrorIs(t, <-received, transport.ErrStall, "a segment is held back")
				synctest.Wait()
				tc.end(a)
				flushErr := <-flush
				for _, want := range tc.mine {
					require.ErrorIs(t, flushErr, want, "a parked Flush ends")
					require.ErrorIs(t, a.Flush(true), want, "Flush ends")
					require.ErrorIs(t, placertest.Receive(a, &collector{}), want, "Receive ends")
					require.ErrorIs(t, a.Discard(), want, "Discard ends")
				}
				a.Abort(errors.New("later"))
				require.ErrorIs(t, a.Close(), tc.mine[len(tc.mine)-1], "the first cause stays")
				require.ErrorIs(t, a.CloseSend(), net.ErrClosed, "nothing is left to close")
				for _, want := range tc.peers {
					require.ErrorIs(t, placertest.Receive(b, &collector{}), want, "the peer learns it")
					require.ErrorIs(t, b.Flush(true), want, "the peer learns it")
				}
				_ = b.Close()
			})
		})
	}
}

func TestGracefulEnd(t *testing.T) {
	a, b := New(Options{})
	flushAll(t, a, "last")
	require.NoError(t, a.CloseSend(), "one half ends")
	require.True(t, a.Append([]byte("x"), nil, true), "appended")
	require.ErrorIs(t, a.Flush(false), syscall.EPIPE, "nothing goes out after the end")
	c := &collector{stop: func() bool { return false }}
	require.Equal(t, io.EOF, placertest.Receive(b, c), "the end comes")
	require.Equal(t, []string{"last"}, c.segs, "after the last segment")
	flushAll(t, b, "answer")
	require.NoError(t, placertest.Receive(a, &collector{}), "the other half still works")
	require.NoError(t, b.Close(), "the peer closes with nothing unread")
	require.Equal(t, io.EOF, placertest.Receive(a, c), "which is graceful")
	a, b = New(Options{})
	require.NoError(t, b.Close())
	require.NoError(t, a.Flush(false), "there is nothing that it could not take any more")
	require.NoError(t, a.Close(), "and so does this end")
}

func TestDoesNotAllocate(t *testing.T) {
	if raceorder.Enabled {
		t.Skip("the race detector allocates")
	}
	a, b := New(Options{Window: 4})
	defer a.Abort(nil)
	head, payload := make([]byte, 14), [][]byte{make([]byte, 500), make([]byte, 700)}
	c := &placertest.Counter{}
	step := func() {
		for i := range 20 {
			a.Append(head, payload, i%2 == 0)
		}
		if a.Flush(false) != nil || b.Receive(c, transport.NoWait) != nil {
			t.Fatal("a segment did not pass")
		}
	}
	for range 100 { // until every segment that is used again has held both sizes
		step()
	}
	require.Zero(t, testing.AllocsPerRun(100, step), "nothing is allocated in steady state")
}
