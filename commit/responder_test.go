package commit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

func TestCMT_13_16_21_CommitCoversWhatWasSentBefore(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(nil)
	var seen string
	c.media.before = func() { seen = string(mem[:8]) }
	first := writeOf(part(r, 0, 4), "dura")
	first[0] &^= 0x40 // not the last segment of its message
	c.sends("a Write of two segments, then a Commit",
		first, writeOf(part(r, 4, 4), "ble!"), requestOf(1, ask(1, part(r, 0, 8), part(r, 16, 4))))
	c.wantIdle("no response before the octets are durable")
	c.wantAnswer("then it leaves", 1, 1, 0)
	require.Equal(t, "durable!", seen, "the Write was placed before the flush")
	require.Equal(t, []Range{{0, 8}, {16, 4}}, c.media.flushed)
}

func TestCMT_11_InvalidateSTagIsIgnored(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(nil)
	segment := requestOf(1, ask(1, part(r, 0, 8)))
	copy(segment[2:], "\xff\xff\xff\xff")
	c.sends("an STag where none belongs", segment)
	c.wantAnswer("means nothing", 1, 1, 0)
	require.True(t, r.Valid())
}

func TestCMT_12_50_NotEnabled(t *testing.T) {
	for what, change := range map[string]func(*Config, *rdmap.Config){
		"no extension":       func(_ *Config, r *rdmap.Config) { r.Extensions = []*rdmap.Extension{} },
		"not as a responder": func(c *Config, _ *rdmap.Config) { c.Task = nil },
	} {
		t.Run(what, func(t *testing.T) {
			c := converse(t, change)
			r, _ := c.region(nil)
			c.wantRefused("an unexpected opcode", transport.RDMAPOpcode, requestOf(1, ask(1, part(r, 0, 8))))
		})
	}
	c := converse(t, func(_ *Config, r *rdmap.Config) { r.Extensions = []*rdmap.Extension{} })
	c.wantRefused("and so is a response", transport.RDMAPOpcode, responseOf(1, 1, 0))
}

func TestCMT_10_28_MalformedRequest(t *testing.T) {
	for _, n := range []int{0, 4, 8, 12, 19, 21, 24, 28, 32} {
		c := converse(t, nil)
		c.wantRefused("no request has this length", transport.RDMAPStreamCatastrophic, untagged(0x4c, 1, 1, string(make([]byte, n))))
	}
	for _, n := range []int{20, 36, 40, 52, 56} {
		c := converse(t, nil)
		r, _ := c.region(nil)
		q := ask(0)
		for range (n - 4) / 16 {
			q.Regions = append(q.Regions, Region{})
		}
		if (n-4)%16 == 4 {
			q.Regions = q.Regions[1:]
			q = q.then(r.STag(), r.BaseTO(), 0)
		}
		require.Len(t, q.Append(nil), n)
		c.sends("this one is", requestOf(1, q))
		c.wantAnswer("a request", 1, 0, 0)
	}
}

func TestCMT_9_13_RegionLimit(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(nil)
	four := []Region{part(r, 8, 1), part(r, 16, 2), part(r, 24, 3), part(r, 32, 4)}
	c.sends("as many regions as were offered", requestOf(1, ask(1, four...).then(r.STag(), r.BaseTO(), 0)))
	c.wantAnswer("are served", 1, 1, 0)
	require.Equal(t, []Range{{8, 1}, {16, 2}, {24, 3}, {32, 4}, {0, 8}}, c.media.flushed, "each of them, and the follow-on")
	more := ask(2, append(four, part(r, 40, 5))...).then(r.STag(), r.BaseTO(), 0)
	c.wantRefused("more do not fit the buffer", transport.DDPTooLong, requestOf(2, more))
}

func TestCMT_28_34_35_36_37_38_39_ProtectionErrors(t *testing.T) {
	for what, x := range map[string]struct {
		code transport.Code
		bad  func(c *conversation) Region
	}{
		"an unknown STag": {transport.RDMAPInvalidSTag, func(*conversation) Region { return Region{0x01020304, 0, 1} }},
		"an STag that was invalidated": {transport.RDMAPInvalidSTag, func(c *conversation) Region {
			r, _ := c.region(nil)
			require.NoError(c, c.table.Invalidate(context.Background(), r))
			return part(r, 0, 8)
		}},
		"another stream": {transport.RDMAPNotAssociated, func(c *conversation) Region {
			r, _ := c.region(func(o *stag.Options) { o.Scope = bob })
			return part(r, 0, 8)
		}},
		"another PD": {transport.RDMAPNotAssociated, func(c *conversation) Region {
			r, _ := c.region(func(o *stag.Options) { o.Scope.PD = 2 })
			return part(r, 0, 8)
		}},
		"no RemoteWrite": {transport.RDMAPAccess, func(c *conversation) Region {
			r, _ := c.region(func(o *stag.Options) { o.Access = stag.LocalWrite | stag.RemoteRead | stag.RemoteAtomic })
			return part(r, 0, 8)
		}},
		"one octet too many": {transport.RDMAPBounds, func(c *conversation) Region {
			r, _ := c.region(nil)
			return part(r, 32, 33)
		}},
		"before the region": {transport.RDMAPBounds, func(c *conversation) Region {
			r, _ := c.region(nil)
			return part(r, -1, 2)
		}},
		"TO and length wrap": {transport.RDMAPWrap, func(c *conversation) Region {
			r, _ := c.region(nil)
			return Region{r.STag(), math.MaxUint64 - 3, 8}
		}},
	} {
		t.Run(what, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			for _, ahead := range []int{1, 3} {
				c := converse(t, nil)
				good, _ := c.region(nil)
				regions := append(slices.Repeat([]Region{part(good, 0, 8)}, ahead), x.bad(c))
				c.wantRefused("ends the stream, in whichever place", x.code, requestOf(1, ask(1, regions...)))
				require.Empty(t, c.media.flushed, "all is checked before anything is flushed")
				require.NoError(t, c.table.Invalidate(ctx, good), "nothing stays pinned")
			}

			c := converse(t, nil)
			good, mem := c.region(nil)
			bad := x.bad(c)
			c.wantRefused("a follow-on is checked likewise", x.code,
				requestOf(1, ask(1, part(good, 0, 8)).then(bad.STag, bad.TO+uint64(bad.Len/33*25), math.MaxUint64)))
			require.Empty(t, c.media.flushed)
			require.Equal(t, make([]byte, 64), mem)
		})
	}
	c := converse(t, nil)
	r, _ := c.region(nil)
	c.sends("up to the last octet of a region", requestOf(1, ask(1, part(r, 63, 1), part(r, 0, 64))))
	c.wantAnswer("all is its own", 1, 1, 0)
}

// TestCMT_28_RequestInErrorEndsTheStreamAtOnce, while an earlier one is being served: the Terminate is sent at the earliest
// opportunity, and about the first message in error (draft section 5.1 (2), RFC 5040 section 7.1 (4)).
func TestCMT_28_RequestInErrorEndsTheStreamAtOnce(t *testing.T) {
	for what, bad := range map[string]func(*stag.Region) (transport.Code, Request){
		"no STag": func(*stag.Region) (transport.Code, Request) {
			return transport.RDMAPInvalidSTag, ask(2, Region{0x01020304, 0, 1})
		},
		"out of range": func(r *stag.Region) (transport.Code, Request) { return transport.RDMAPBounds, ask(2, part(r, 0, 65)) },
		"not aligned": func(r *stag.Region) (transport.Code, Request) {
			return transport.RDMAPStreamCatastrophic, ask(2, part(r, 0, 8)).then(r.STag(), 0x1001, 1)
		},
	} {
		t.Run(what, func(t *testing.T) {
			c := converse(t, nil)
			r, mem := c.region(nil)
			c.sends("a Commit that takes its time", requestOf(1, ask(1, part(r, 0, 8))))
			code, request := bad(r)
			segment := requestOf(2, request)
			err := c.send(segment)
			var e *ddp.SegmentError
			require.ErrorAs(t, err, &e, "the next is refused")
			require.Equal(t, code, e.Code())
			require.True(t, c.s.Terminate(err))
			c.sends("more", writeOf(part(r, 0, 8), "behind"), untagged(0x43, 0, 1, ""), writeOf(Region{STag: 0x01020304}, "in error, too"))
			require.Equal(t, make([]byte, 64), mem, "of what follows nothing is placed")
			require.Empty(t, c.msgs, "and nothing is delivered")
			want := rdmap.Terminate{Code: code, SegmentLen: len(segment), DDPHeader: segment[:18]}
			c.wantSegment("the Terminate is about the request", untagged(0x47, 2, 1, string(want.Append(nil))))
			c.run()
			c.wantIdle("the first is not answered any more")
		})
	}
}

// TestCMT_54_NothingStaysUnderWay: a goroutine that waits for the requests that are being served
// does not wait for one that was refused, or is over.
func TestCMT_54_NothingStaysUnderWay(t *testing.T) {
	serving := 0
	under := func(c *Config, _ *rdmap.Config) {
		c.UnderWay = func(change int) { serving += change }
		c.Limits.Octets = 64
	}
	c := converse(t, under)
	r, _ := c.region(nil)
	c.sends("a Commit", requestOf(1, ask(1, part(r, 0, 8))))
	require.Equal(t, 1, serving)
	c.wantAnswer("that is answered", 1, 1, 0)
	require.Zero(t, serving)
	c.sends("one that is too large", requestOf(2, ask(2, part(r, 0, 64), part(r, 0, 64))))
	require.Zero(t, serving)
	c.wantRefused("one that is no request", transport.RDMAPInvalidSTag, requestOf(3, ask(3, Region{0x01020304, 0, 1})))
	require.Zero(t, serving)
	c = converse(t, under)
	r, _ = c.region(nil)
	c.wantRefused("a follow-on to nowhere", transport.RDMAPInvalidSTag, requestOf(1, ask(1, part(r, 0, 8)).then(0x01020304, 0, 0)))
	require.Zero(t, serving)
	require.Empty(t, c.media.flushed)
}

func TestCMT_40_ZeroLengthRegion(t *testing.T) {
	c := converse(t, nil)
	c.sends("a region of no octets", requestOf(1, ask(1, Region{0xdeadbeef, math.MaxUint64, 0})))
	c.wantSegment("is durable", responseOf(1, 1, 0))
	require.Empty(t, c.media.flushed, "and nothing is flushed")
}

func TestCMT_18_19_RegionThatIsNotDurable(t *testing.T) {
	plain := func(o *stag.Options) { o.Flusher = nil }
	c := converse(t, nil)
	r, _ := c.region(plain)
	c.sends("a Commit of plain memory", requestOf(1, ask(1, part(r, 0, 8))))
	c.wantSegment("succeeds at once", responseOf(1, 1, 0))
	require.EqualValues(t, 1, c.stats.NotDurable.Load())

	c = converse(t, func(c *Config, _ *rdmap.Config) { c.Strict = true })
	r, mem := c.region(plain)
	durable, _ := c.region(nil)
	c.sends("where it is asked for strictly", requestOf(1, ask(1, part(durable, 0, 8), part(r, 0, 8))))
	c.wantAnswer("it is told", 1, 1, MakeStatus(1, NotDurable))
	c.sends("of a follow-on, too", requestOf(2, ask(2, part(durable, 0, 8)).then(r.STag(), r.BaseTO(), math.MaxUint64)))
	c.wantAnswer("which is then not stored", 2, 2, MakeStatus(NoRegion, NotDurable))
	require.Equal(t, make([]byte, 64), mem)
}

func TestCMT_29_30_33_MediaError(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(nil)
	c.media.fail = map[int64]error{8: syscall.EIO}
	c.sends("the second of three regions fails",
		requestOf(1, ask(1, part(r, 0, 8), part(r, 8, 8), part(r, 16, 8)).then(r.STag(), r.BaseTO(), math.MaxUint64)))
	c.wantAnswer("the status tells which, and there is no Terminate", 1, 1, MakeStatus(1, DataLost))
	require.Equal(t, []Range{{0, 8}, {8, 8}}, c.media.flushed, "what comes behind it is left alone")
	require.Equal(t, make([]byte, 64), mem)
	require.EqualValues(t, 1, c.stats.Failed.Load())
	c.sends("the stream goes on", readOf(2), requestOf(3, ask(2, part(r, 0, 8))))
	c.wantSegment("with a Read", readResponse)
	c.wantAnswer("and a Commit", 2, 2, 0)
}

func TestCMT_31_StatusOfWhatAFlusherSays(t *testing.T) {
	for err, want := range map[error]Code{
		errors.New("any"):                    Failed,
		syscall.EIO:                          DataLost,
		syscall.ENOSPC:                       DataLost,
		syscall.EROFS:                        ReadOnly,
		syscall.ENOMEM:                       Transient,
		context.Canceled:                     Transient,
		syscall.Errno(77):                    Vendor | 77,
		&Error{Status: MakeStatus(0, Limit)}: Limit,
		ErrIntegrity:                         Integrity,
		&Error{}:                             Failed,
	} {
		require.Equal(t, want, codeOf(err), "%v", err)
	}
	require.Equal(t, OK, codeOf(nil))
}

func TestCMT_42_44_45_46_FollowOn(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(nil)
	word := (*uint64)(unsafe.Pointer(&mem[16]))
	var at []uint64
	c.media.before = func() { at = append(at, atomic.LoadUint64(word)) }
	c.sends("a Commit with a follow-on", requestOf(1, ask(1, part(r, 0, 8), part(r, 8, 8)).then(r.STag(), r.BaseTO()+16, 42)))
	c.wantAnswer("succeeds", 1, 1, 0)
	require.Equal(t, []uint64{0, 0, 42}, at, "it is stored after all regions, as an integer of the host, and then flushed")
	require.Equal(t, Range{16, 8}, c.media.flushed[2])

	c.media.fail = map[int64]error{16: errors.New("no")}
	c.sends("what cannot be made durable", requestOf(2, ask(2, Region{}).then(r.STag(), r.BaseTO()+16, 43)))
	c.wantAnswer("is told", 2, 2, MakeStatus(NoRegion, FollowOnFailed))

	for off := uint64(1); off < 8; off++ {
		c := converse(t, nil)
		r, mem := c.region(nil)
		c.wantRefused("what is not aligned cannot be stored at once", transport.RDMAPStreamCatastrophic,
			requestOf(1, ask(1, part(r, 0, 8)).then(r.STag(), r.BaseTO()+off, math.MaxUint64)))
		require.Equal(t, make([]byte, 64), mem)
		require.Empty(t, c.media.flushed)
	}
}

// A deferring Flusher need not be waited for; the test calls its then.
type deferring struct {
	media
	then func(error) func()
}

func (d *deferring) flushThen(_, _ int64, then func(error) func()) (pending bool, err error) {
	d.then = then
	return true, nil
}

// TestCMT_46_FollowOnIsStoredOnce: octets written to its place while it is made durable stay.
func TestCMT_46_FollowOnIsStoredOnce(t *testing.T) {
	c := converse(t, nil)
	var d deferring
	r, mem := c.region(func(o *stag.Options) { o.Flusher = &d })
	c.sends("a follow-on", requestOf(1, ask(1, Region{}).then(r.STag(), r.BaseTO()+16, 42)))
	require.EqualValues(t, 42, *(*uint64)(unsafe.Pointer(&mem[16])))
	c.sends("a Write to its place, while it is flushed", writeOf(part(r, 16, 8), "newer..."))
	d.then(nil)()
	c.wantSegment("which ends", responseOf(1, 1, 0))
	require.Equal(t, "newer...", string(mem[16:24]))
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	require.NoError(t, c.table.Invalidate(ctx, r), "and pins nothing")
}

// A worn buffer takes nothing.
type worn struct{ answering }

func (*worn) WriteAt([]byte, int64) (int, error) { return 0, syscall.EIO }

func TestCMT_43_FollowOnThatCannotBeStored(t *testing.T) {
	c := converse(t, nil)
	good, _ := c.region(nil)
	r, err := c.table.RegisterBuffer(&worn{answering{atomic: true}}, stag.Options{Access: stag.LocalWrite | stag.Remote, Scope: alice, Flusher: &c.media})
	require.NoError(t, err)
	c.sends("a follow-on to a buffer that takes nothing", requestOf(1, ask(1, part(good, 0, 8)).then(r.STag(), 0, 42)))
	c.wantAnswer("has failed", 1, 1, MakeStatus(NoRegion, FollowOnFailed))
	require.Equal(t, []Range{{0, 8}}, c.media.flushed, "and is not flushed")
}

// A mined buffer panics.
type mined struct{ answering }

func (*mined) WriteAt([]byte, int64) (int, error) { panic("by the program") }

// TestFollowOnWhoseBufferPanics: the program is told of it, as of a Flusher that panics.
func TestFollowOnWhoseBufferPanics(t *testing.T) {
	var told []*stag.PanicError
	c := converse(t, func(cfg *Config, _ *rdmap.Config) {
		cfg.Panicked = func(p *stag.PanicError) { told = append(told, p) }
	})
	r, err := c.table.RegisterBuffer(&mined{answering{atomic: true}}, stag.Options{Access: stag.LocalWrite | stag.Remote, Scope: alice, Flusher: &c.media})
	require.NoError(t, err)
	c.sends("a follow-on to a buffer that panics", requestOf(1, ask(1, Region{}).then(r.STag(), 0, 42)))
	c.wantAnswer("has failed", 1, 1, MakeStatus(NoRegion, FollowOnFailed))
	require.Len(t, told, 1)
	require.Equal(t, "WriteAt", told[0].Method)
}

// A heap is a Buffer.
type heap struct{ octets [64]byte }

func (h *heap) Size() int64                              { return int64(len(h.octets)) }
func (h *heap) ReadAt(p []byte, off int64) (int, error)  { return copy(p, h.octets[off:]), nil }
func (h *heap) WriteAt(p []byte, off int64) (int, error) { return copy(h.octets[off:], p), nil }
func (h *heap) Sync() error                              { return nil }

type answering struct {
	heap
	atomic bool
}

func (a *answering) Atomic() bool { return a.atomic }

// TestCMT_45_FollowOnToABuffer: a Buffer that does not store eight octets at once can take no follow-on.
func TestCMT_45_FollowOnToABuffer(t *testing.T) {
	wrapped := func(b SyncBuffer) SyncBuffer {
		w, err := NewBuffer(b)
		require.NoError(t, err)
		return w
	}
	for what, x := range map[string]struct {
		buf SyncBuffer
		ok  bool
	}{
		"one that says nothing":             {&heap{}, false},
		"one that says no":                  {&answering{}, false},
		"one that says yes":                 {&answering{atomic: true}, true},
		"a durable one that says nothing":   {wrapped(&heap{}), false},
		"a durable one of one that says no": {wrapped(&answering{}), false},
		"a durable one that says yes":       {wrapped(&answering{atomic: true}), true},
	} {
		for _, window := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, window %v", what, window), func(t *testing.T) {
				c := converse(t, nil)
				good, _ := c.region(nil)
				o := stag.Options{Access: stag.LocalWrite | stag.Remote | stag.MWBind, BaseTO: 0x1000, Scope: alice, Flusher: &c.media}
				r, err := c.table.RegisterBuffer(x.buf, o)
				require.NoError(t, err)
				at := part(r, 16, 8)
				if window {
					w, err := c.table.AllocateWindow(alice.PD)
					require.NoError(t, err)
					bound, err := w.Prepare(32, stag.RemoteWrite, 0, nil)
					require.NoError(t, err)
					require.NoError(t, c.table.Bind(alice, new(stag.Windows), bound, r, 8))
					at = part(bound, 8, 8)
				}
				request := requestOf(1, ask(1, part(good, 0, 8)).then(at.STag, at.TO, math.MaxUint64))
				got := make([]byte, 64)
				if x.ok {
					c.sends("a follow-on", request)
					c.wantAnswer("is stored", 1, 1, 0)
					_, err = x.buf.ReadAt(got, 0)
					require.NoError(t, err)
					require.Equal(t, bytes.Repeat([]byte{0xff}, 8), got[16:24])
					require.Len(t, c.media.flushed, 2)
					return
				}
				c.wantRefused("cannot be stored at once", transport.RDMAPStreamCatastrophic, request)
				_, err = x.buf.ReadAt(got, 0)
				require.NoError(t, err)
				require.Equal(t, make([]byte, 64), got, "nothing is written")
				require.Empty(t, c.media.flushed, "nor flushed")
			})
		}
	}
}

func TestCMT_43_NoFollowOnAfterAFailure(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(nil)
	c.media.fail = map[int64]error{0: errors.New("no")}
	c.sends("a Commit that fails", requestOf(1, ask(1, part(r, 0, 8)).then(r.STag(), r.BaseTO()+16, 42)))
	c.wantAnswer("has a status that is not 0", 1, 1, MakeStatus(0, Failed))
	require.Equal(t, make([]byte, 64), mem, "and stores nothing")
}

func TestCMT_46_FollowOnsKeepTheOrder(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(nil)
	word := (*uint64)(unsafe.Pointer(&mem[16]))
	for id := uint32(1); id <= 3; id++ {
		c.sends("three follow-ons to one place", requestOf(msnOf(id), ask(id, part(r, 0, 8)).then(r.STag(), r.BaseTO()+16, uint64(id))))
	}
	tasks := c.tasks
	c.tasks = nil
	for _, f := range []func(){tasks[2], tasks[1], tasks[0]} { // as a scheduler might have it
		f()
	}
	c.run()
	require.EqualValues(t, 3, *word, "the last request wins")
	for id := uint32(1); id <= 3; id++ {
		c.wantSegment("answers in order", responseOf(msnOf(id), id, 0))
	}
}

func TestCMT_51_TotalLimit(t *testing.T) {
	c := converse(t, func(c *Config, _ *rdmap.Config) { c.Limits.Octets = 16 })
	r, _ := c.region(nil)
	c.sends("too many octets", requestOf(1, ask(1, part(r, 0, 8), part(r, 0, 9))), requestOf(2, ask(2, part(r, 0, 8), part(r, 0, 8))))
	c.wantAnswer("are a status", 1, 1, MakeStatus(NoRegion, Limit))
	c.wantAnswer("and the stream goes on", 2, 2, 0)
	require.Len(t, c.media.flushed, 2, "nothing of the first was flushed")
}

// TestCMT_25_OneSyncAnswersSeveralCommits: none of them has a goroutine of its own.
func TestCMT_25_OneSyncAnswersSeveralCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := converse(t, nil)
		d := disk{takes: time.Second}
		g := newGroup(64, true, d.sync)
		r, mem := c.region(durableBy(g))
		c.sends("a Commit after a Write", writeOf(part(r, 0, 4), "none"), requestOf(1, ask(1, part(r, 0, 4), part(r, 8, 4))))
		synctest.Wait() // it is being synced
		c.sends("a Commit after another Write", writeOf(part(r, 8, 4), "lost"), requestOf(2, ask(2, part(r, 8, 4))))
		c.sends("one more", requestOf(3, ask(3, part(r, 8, 4)).then(r.STag(), r.BaseTO()+16, 1)))
		require.Empty(t, c.tasks)
		c.wantIdle("they wait")
		time.Sleep(time.Minute)
		for id := uint32(1); id <= 3; id++ {
			c.wantSegment("each is answered", responseOf(msnOf(id), id, 0))
		}
		require.Equal(t, "none\x00\x00\x00\x00lost", string(mem[:12]))
		require.EqualValues(t, 3, g.Syncs(), "one for the first, one for what was written meanwhile, and one for the follow-on")
	})
}

// TestCMT_30_33_SharedSyncThatFails: each Commit names its own region that was lost.
func TestCMT_30_33_SharedSyncThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := converse(t, nil)
		d := disk{takes: time.Second, err: syscall.EIO}
		r, _ := c.region(durableBy(newGroup(64, true, d.sync)))
		sound, _ := c.region(nil)
		c.sends("a Commit after a Write, and one more", writeOf(part(r, 0, 4), "lost"), requestOf(1, ask(1, part(r, 0, 4))),
			requestOf(2, ask(2, Region{}, part(r, 0, 4), part(sound, 0, 4))))
		time.Sleep(time.Minute)
		c.wantSegment("the first is told", responseOf(1, 1, MakeStatus(0, DataLost)))
		c.wantSegment("and the other", responseOf(2, 2, MakeStatus(1, DataLost)))
		require.Empty(t, c.media.flushed, "which flushes nothing behind that")
	})
}

// durableBy makes g the Flusher of a region.
func durableBy(g *group) func(*stag.Options) {
	return func(o *stag.Options) { o.Flusher, o.Dirty = g, func(off, n int64) { touch(g, off, n) } }
}

func TestCMT_56_OverlappingRegions(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(nil)
	c.sends("the same octets three times", requestOf(1, ask(1, part(r, 0, 16), part(r, 8, 16), part(r, 0, 16))))
	c.wantAnswer("are durable", 1, 1, 0)
}

func TestCMT_23_ResponsesKeepTheOrder(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(nil)
	c.sends("a slow Commit, a Read, a Commit of nothing", requestOf(1, ask(1, part(r, 0, 8))), readOf(2), requestOf(3, ask(3, Region{})))
	c.wantIdle("all wait for the first")
	c.wantAnswer("which is answered", 1, 1, 0)
	c.wantSegment("then the others, in the order of the requests", readResponse)
	c.wantSegment("as they came", responseOf(2, 3, 0))
}

func TestCMT_24_AtomicWaitsForTheCommit(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(nil)
	word := (*uint64)(unsafe.Pointer(&mem[0]))
	c.sends("a slow Commit, an Atomic", requestOf(1, ask(1, part(r, 0, 8))), addOf(2, part(r, 0, 8)))
	c.wantIdle("nothing is answered")
	require.Zero(t, *word, "nor is the Atomic done")
	c.wantAnswer("the Commit is", 1, 1, 0)
	c.wantSegment("and then the Atomic", atomicResponseOf(2, 2, 0))
	require.EqualValues(t, 1, *word)
}

func TestCMT_24_CommitAfterAnAtomicCoversIt(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(nil)
	word := (*uint64)(unsafe.Pointer(&mem[0]))
	var seen uint64
	c.media.before = func() { seen = *word }
	c.sends("an Atomic, and a Commit of its result", addOf(1, part(r, 0, 8)), requestOf(2, ask(2, part(r, 0, 8))))
	c.run()
	require.Empty(t, c.media.flushed, "the Commit does not begin before the Atomic is done")
	c.wantSegment("which is answered", atomicResponseOf(1, 1, 0))
	c.wantAnswer("and then the Commit", 2, 2, 0)
	require.EqualValues(t, 1, seen)
}

func TestCMT_25_26_OthersDoNotWait(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(nil)
	c.media.before = func() {
		c.sends("a Write to what is being flushed", writeOf(part(r, 0, 8), "flushing"))
	}
	c.sends("after a slow Commit", requestOf(1, ask(1, part(r, 0, 8))), writeOf(part(r, 8, 4), "next"), untagged(0x43, 0, 1, ""))
	require.Equal(t, "next", string(mem[8:12]), "a Write is placed")
	require.Len(t, c.msgs, 1, "a Send is delivered")
	c.wantAnswer("an overlapping Write is no error", 1, 1, 0)
	require.Equal(t, "flushing", string(mem[:8]))
}

func TestCMT_53_InvalidateWaitsForTheFlush(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(nil)
	invalidated := make(chan error, 1)
	c.media.before = func() {
		go func() { invalidated <- c.table.Invalidate(context.Background(), r) }()
		for r.Valid() { // until it has begun
			select {
			case err := <-invalidated:
				require.Fail(t, "ended before the flush", "%v", err)
			default:
			}
		}
		require.Empty(t, invalidated, "the octets are in use")
	}
	c.sends("a Commit", requestOf(1, ask(1, part(r, 0, 8))))
	c.wantAnswer("ends as if nothing had happened", 1, 1, 0)
	require.NoError(t, <-invalidated)
	c.wantRefused("the next finds no STag", transport.RDMAPInvalidSTag, requestOf(2, ask(2, part(r, 0, 8))))
}

func TestCMT_48_54_FloodIsBounded(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(nil)
	for msn := range 4 {
		c.sends("as many as the IRD", requestOf(msnOf(uint32(msn+1)), ask(1, part(r, 0, 8))))
	}
	require.Len(t, c.tasks, 4)
	c.wantRefusedNow("one more ends the stream", transport.DDPMSNRange, requestOf(5, ask(1, part(r, 0, 8))))
	c.run()
}
