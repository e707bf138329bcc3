package soliciting

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/solicit"
	"github.com/goiwarp/iwarp/transport"
)

var errLimit = errors.New("limit")

// A stream is a user of a Solicitor, and plays the part of its rdmap.Stream.
type stream struct {
	testing.TB
	user   *User
	config rdmap.Config
	done   []rdmap.Status
	series int          // of completions
	kicks  atomic.Int32 // by a goroutine of its own
	posts  atomic.Int32 // by another goroutine
}

func joins(t testing.TB, s *Solicitor) *stream {
	t.Helper()
	x := &stream{TB: t}
	var err error
	x.user, err = s.Join(func() { x.posts.Add(1) }, func() { x.kicks.Add(1) }, errLimit)
	require.NoError(t, err)
	x.config.Events = x
	x.user.Configure(&x.config)
	return x
}

func (x *stream) Complete(_ *rdmap.Request, st rdmap.Status, _ transport.Code) {
	x.done = append(x.done, st)
}

func (x *stream) Completed()                 { x.series++ }
func (x *stream) Terminated(rdmap.Terminate) {}
func (x *stream) Kick()                      {}

// read returns a Read of n octets.
func (x *stream) read(c solicit.Class, n uint64) *rdmap.Request {
	x.Helper()
	r := &rdmap.Request{Kind: rdmap.KindRead, Len: n}
	require.NoError(x, x.user.Fill(r, c, n))
	return r
}

func (x *stream) completes(r *rdmap.Request, st rdmap.Status) {
	x.config.Events.Complete(r, st, 0)
	x.config.Events.Completed()
}

func TestSOL_17_21_AReadIsAdmittedOnce(t *testing.T) {
	s := New(solicit.Config{Fixed: 1000})
	a, b := joins(t, s), joins(t, s)
	first, second := a.read(solicit.Latency, 800), b.read(solicit.Bulk, 800)
	require.Equal(t, rdmap.Go, a.config.Admit(first))
	require.NotZero(t, first.Grant)
	require.Equal(t, rdmap.Wait, b.config.Admit(second))
	require.Equal(t, rdmap.Wait, b.config.Admit(second))
	require.Zero(t, second.Grant)
	require.Zero(t, b.kicks.Load())
	require.EqualValues(t, 1, s.Stats().Queued)
	a.completes(first, rdmap.StatusSuccess)
	require.Equal(t, []rdmap.Status{rdmap.StatusSuccess}, a.done, "the queue pair hears of it")
	require.EqualValues(t, 1, b.kicks.Load())
	require.Zero(t, a.kicks.Load())
	require.Equal(t, rdmap.Go, b.config.Admit(second))
	require.EqualValues(t, 1, b.user.Waits().Count)
	require.Zero(t, a.user.Waits())
	b.completes(second, rdmap.StatusFlushed)
	stats := s.Stats()
	require.Zero(t, stats.Granted)
	require.EqualValues(t, 1, stats.Failed, "a Read that was flushed says nothing of the way")
	require.Equal(t, [2]uint64{1, 1}, stats.Grants)
	b.completes(b.read(solicit.Bulk, 8), rdmap.StatusFlushed)
	require.Zero(t, s.Stats().Unidentified, "what was never admitted has no grant")
}

func TestSOL_18_FillRefuses(t *testing.T) {
	s := New(solicit.Config{Fixed: 1000})
	x := joins(t, s)
	var r rdmap.Request
	require.NoError(t, x.user.Fill(&r, solicit.Bulk, 1000))
	require.EqualValues(t, solicit.Bulk, r.Class)
	err := x.user.Fill(&r, solicit.Latency, 1001)
	require.ErrorIs(t, err, errLimit)
	require.EqualError(t, err, "limit: an RDMA Read of 1001 octets, the window of the Solicitor has at most 1000")
	require.EqualError(t, x.user.Fill(&r, 2, 1), "iwarp: an RDMA Read of unknown Class 2")
	require.NoError(t, (*User)(nil).Fill(&r, 2, 1<<40), "without a Solicitor neither is looked at")
}

func TestSOL_18_Pieces(t *testing.T) {
	for _, c := range []struct{ window, n, want int }{
		{1 << 20, 1 << 20, 64 << 10},
		{1 << 20, 64 << 10, 64 << 10},
		{1 << 20, 9, 9},
		{1000, 1 << 20, 1000},
	} {
		octets, reads := joins(t, New(solicit.Config{Fixed: int64(c.window)})).user.Pieces(c.n)
		require.Equal(t, c.want, octets)
		require.Greater(t, reads, 1)
	}
	octets, reads := (*User)(nil).Pieces(1 << 20)
	require.Equal(t, 1<<20, octets)
	require.Equal(t, 1, reads)
}

func TestSOL_22_JoinAndClose(t *testing.T) {
	_, err := (*Solicitor)(nil).Join(nil, nil, nil)
	require.Error(t, err)
	_, err = New(solicit.Config{Fixed: 1}).Join(nil, nil, nil)
	require.EqualError(t, err, "iwarp: Solicitor: "+solicit.Config{Fixed: 1}.Check().Error())

	s := New(solicit.Config{})
	a, b := joins(t, s), joins(t, s)
	require.EqualError(t, s.Close(), "iwarp: close Solicitor: still in use by 2 queue pairs")
	a.user.Close()
	require.Error(t, s.Close())
	b.user.Close()
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	_, err = s.Join(nil, nil, nil)
	require.EqualError(t, err, "iwarp: Solicitor closed: use of closed network connection")
	var none *User
	none.Configure(nil)
	none.Leave()
	none.Close()
	require.Zero(t, none.Waits())
}

// TestSOL_22_EveryQueuePairMayWait: solicit bounds its queues, but a Solicitor does not need that bound.
func TestSOL_22_EveryQueuePairMayWait(t *testing.T) {
	s := New(solicit.Config{Fixed: 100})
	x := joins(t, s)
	require.Equal(t, rdmap.Go, x.config.Admit(x.read(solicit.Latency, 100)))
	for range 5000 {
		x := joins(t, s)
		require.Equal(t, rdmap.Wait, x.config.Admit(x.read(solicit.Latency, 100)))
	}
	s = New(solicit.Config{Fixed: 100, MaxQueue: 1})
	x, y, z := joins(t, s), joins(t, s), joins(t, s)
	require.Equal(t, rdmap.Go, x.config.Admit(x.read(solicit.Latency, 100)))
	require.Equal(t, rdmap.Wait, y.config.Admit(y.read(solicit.Latency, 100)))
	require.Equal(t, rdmap.Skip, z.config.Admit(z.read(solicit.Latency, 100)), "but one that was asked for holds")
}

func TestSOL_20_TimerEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(solicit.Config{Fixed: 100, Dispatch: [2]time.Duration{time.Second, 3 * time.Second}})
		holder, fast, slow, late := joins(t, s), joins(t, s), joins(t, s), joins(t, s)
		held := holder.read(solicit.Latency, 100)
		require.Equal(t, rdmap.Go, holder.config.Admit(held))
		a, b := fast.read(solicit.Latency, 100), slow.read(solicit.Bulk, 100)
		require.Equal(t, rdmap.Wait, slow.config.Admit(b))
		require.Equal(t, rdmap.Wait, fast.config.Admit(a))
		passes := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		passes(time.Second)
		require.Zero(t, fast.kicks.Load(), "the time is not over")
		passes(1)
		require.EqualValues(t, 1, fast.kicks.Load())
		require.Equal(t, rdmap.Skip, fast.config.Admit(a))
		require.Equal(t, Waits{1, time.Second + 1}, fast.user.Waits())
		c := late.read(solicit.Latency, 100)
		require.Equal(t, rdmap.Wait, late.config.Admit(c), "the timer is set again")
		passes(time.Second + 1)
		require.Equal(t, rdmap.Skip, late.config.Admit(c))
		require.Zero(t, slow.kicks.Load())
		passes(time.Second - 1)
		require.Equal(t, rdmap.Skip, slow.config.Admit(b))
		require.EqualValues(t, 3, s.Stats().Expired)
		require.Equal(t, rdmap.Wait, fast.config.Admit(a), "its next Read waits anew")
		require.Equal(t, rdmap.Wait, late.config.Admit(c))
		passes(time.Second)
		fast.user.Leave()
		require.Equal(t, Waits{2, 2*time.Second + 1}, fast.user.Waits(), "it has waited until it left")
		holder.completes(held, rdmap.StatusSuccess)
		require.Equal(t, rdmap.Go, late.config.Admit(c), "what was granted does not expire")
		passes(time.Minute)
		late.completes(c, rdmap.StatusSuccess)
		require.Zero(t, s.Stats().Granted)
		for _, x := range []*stream{holder, fast, slow, late} {
			x.user.Leave()
			x.user.Close()
		}
		require.NoError(t, s.Close())
	})
}

// TestSOL_21_ANewCallerDoesNotOvertake: if there is room for the place at the head of the queue, that place
// gets it, whichever stream asks next.
func TestSOL_21_ANewCallerDoesNotOvertake(t *testing.T) {
	s := New(solicit.Config{Fixed: 100})
	a, b, c := joins(t, s), joins(t, s), joins(t, s)
	first, second, third := a.read(solicit.Latency, 100), b.read(solicit.Latency, 100), c.read(solicit.Latency, 100)
	require.Equal(t, rdmap.Go, a.config.Admit(first))
	require.Equal(t, rdmap.Wait, b.config.Admit(second))
	a.completes(first, rdmap.StatusSuccess)
	require.Equal(t, rdmap.Wait, c.config.Admit(third))
	b.user.Leave()
	require.EqualValues(t, 1, c.kicks.Load(), "a grant that its stream has not taken goes on, too")
	require.Equal(t, rdmap.Go, c.config.Admit(third))
	require.Equal(t, rdmap.Wait, b.config.Admit(second), "no Read of a queue pair that ends starts")
}

// TestSOL_22_ReceivingGoroutineKicks: it kicks one stream, which got the octets that its own Reads returned.
func TestSOL_22_ReceivingGoroutineKicks(t *testing.T) {
	s := New(solicit.Config{Fixed: 200})
	a, b, c := joins(t, s), joins(t, s), joins(t, s)
	hands := func(answered bool) {
		held, first, second := a.read(solicit.Latency, 200), b.read(solicit.Latency, 100), c.read(solicit.Latency, 100)
		require.Equal(t, rdmap.Go, a.config.Admit(held))
		require.Equal(t, rdmap.Wait, b.config.Admit(first))
		require.Equal(t, rdmap.Wait, c.config.Admit(second))
		held.Answered = answered
		a.completes(held, rdmap.StatusSuccess)
		require.Equal(t, rdmap.Go, b.config.Admit(first))
		require.Equal(t, rdmap.Go, c.config.Admit(second))
		b.completes(first, rdmap.StatusSuccess)
		c.completes(second, rdmap.StatusSuccess)
	}
	want := func(posts, kicks [2]int32) {
		t.Helper()
		require.Equal(t, posts, [2]int32{b.posts.Load(), c.posts.Load()})
		require.Equal(t, kicks, [2]int32{b.kicks.Load(), c.kicks.Load()})
	}
	hands(false)
	a.user.Kick()
	want([2]int32{0, 0}, [2]int32{1, 1})
	hands(true)
	want([2]int32{0, 0}, [2]int32{1, 2})
	hands(true) // in the same read
	want([2]int32{0, 0}, [2]int32{2, 3})
	a.user.Kick()
	want([2]int32{1, 0}, [2]int32{2, 3})
	a.user.Kick()
	want([2]int32{1, 0}, [2]int32{2, 3})
	hands(false) // in another goroutine, behind the ones of the receiving goroutine
	want([2]int32{1, 0}, [2]int32{3, 4})
	require.Zero(t, a.posts.Load()+a.kicks.Load())
}

// TestSOL_22_ALargeReadMakesRoom: the window grows to what the largest waiting Read needs, so that Reads before it in
// the queue can start.
func TestSOL_22_ALargeReadMakesRoom(t *testing.T) {
	s := New(solicit.Config{Min: 128, Start: 128, Max: 1024})
	a, b, c := joins(t, s), joins(t, s), joins(t, s)
	first, second, third := a.read(solicit.Latency, 100), b.read(solicit.Latency, 100), c.read(solicit.Latency, 1000)
	require.Equal(t, rdmap.Go, a.config.Admit(first))
	require.Equal(t, rdmap.Wait, b.config.Admit(second))
	require.Equal(t, rdmap.Wait, c.config.Admit(third))
	require.EqualValues(t, 1, b.kicks.Load())
	require.Equal(t, rdmap.Go, b.config.Admit(second))
}

func TestNothingIsAllocatedForARead(t *testing.T) {
	s := New(solicit.Config{Fixed: 1000})
	a, b := joins(t, s), joins(t, s)
	first, second := a.read(solicit.Latency, 800), b.read(solicit.Latency, 800)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		a.config.Admit(first)
		b.config.Admit(second)
		a.completes(first, rdmap.StatusSuccess)
		b.config.Admit(second)
		b.completes(second, rdmap.StatusSuccess)
		a.done, b.done = a.done[:0], b.done[:0]
	}))
}

func BenchmarkAdmitAndRelease(b *testing.B) {
	s := New(solicit.Config{Fixed: 1 << 20})
	x := joins(b, s)
	r := x.read(solicit.Latency, 4096)
	for b.Loop() {
		x.config.Admit(r)
		x.completes(r, rdmap.StatusSuccess)
		x.done = x.done[:0]
	}
}
