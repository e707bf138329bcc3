package rdmap

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

const lendable = stag.LocalWrite | stag.MWBind

// registerOf is the registration of mem under an STag that was allocated.
func (c *conversation) registerOf(id uint64, b *stag.FastRegion, mem []byte) Request {
	c.Helper()
	r, err := b.Prepare(mem, stag.LocalWrite|stag.Remote, 0x1000, nil)
	require.NoError(c, err)
	return Request{ID: id, Kind: KindRegister, Enable: r}
}

func (c *conversation) fastRegion() *stag.FastRegion {
	c.Helper()
	b, err := c.table.Allocate(64, stag.Options{Access: stag.LocalWrite | stag.Remote, Scope: alice})
	require.NoError(c, err)
	return b
}

// bindOf binds a new window to 8 octets of r.
func (c *conversation) bindOf(id uint64, r *stag.Region, off uint64) Request {
	c.Helper()
	w, err := c.table.AllocateWindow(alice.PD)
	require.NoError(c, err)
	prepared, err := w.Prepare(8, stag.RemoteWrite, 0, nil)
	require.NoError(c, err)
	return Request{ID: id, Kind: KindBind, Enable: prepared, Spans: []stag.Span{{Region: r, Off: off}}}
}

// TestVERBS_15_63_RegisterAndBindAreInForceForTheNextRequest: they wait for no earlier
// one, and complete in their turn.
func TestVERBS_15_63_RegisterAndBindAreInForceForTheNextRequest(t *testing.T) {
	c := converse(t, nil)
	on, mem := c.region(64, func(o *stag.Options) { o.Access = lendable })
	source := []byte("registered")
	register, bind := c.registerOf(2, c.fastRegion(), source), c.bindOf(3, on, 8)
	send := Request{ID: 4, Kind: KindSend, Spans: []stag.Span{span(register.Enable, 0, 10)}}
	c.post(readOf(1, target), register, bind, send)
	c.wantSegment("the Read", readRequestOf(1, ReadRequest{Src: target}))
	c.wantSegment("the Send finds what was registered before it", untagged(OpSend, QNSend, 1, "registered"))
	require.Empty(t, c.done, "all wait for the Read to complete")
	c.sends("though the window can be used", tagged(OpWrite, true, RemoteAddr{bind.Enable.STag(), 0}, "lent out!"[:8]))
	require.Equal(t, "lent out", string(mem[8:16]))
	c.sends("the Response", tagged(OpReadResponse, true, RemoteAddr{}, ""))
	c.wantDone("all complete", "1 success", "2 success", "3 success", "4 success")
	require.Equal(t, 1, c.s.Windows().Len())
}

// TestCloseWaitsForTheRequestThatEnables, even while it waits for its turn.
func TestCloseWaitsForTheRequestThatEnables(t *testing.T) {
	c := converse(t, nil)
	b := c.fastRegion()
	register := c.registerOf(2, b, make([]byte, 8)).with(LocalFence)
	c.post(readOf(1, target), register)
	require.NoError(t, c.flush())
	require.ErrorIs(t, b.Close(done(t)), context.Canceled)
	c.sends("what the fence waits for", tagged(OpReadResponse, true, RemoteAddr{}, ""))
	require.NoError(t, c.flush())
	c.wantDone("what was posted before is done", "1 success", "2 success")
	require.False(t, register.Enable.Valid(), "and the peer has no access all the same")
	require.NoError(t, b.Close(done(t)))
}

// TestRequestIsHeldBeforeItIsPosted, and Post takes over that hold.
func TestRequestIsHeldBeforeItIsPosted(t *testing.T) {
	for _, posted := range []bool{false, true} {
		c := converse(t, nil)
		on, _ := c.region(64, nil)
		r := Request{ID: 1, Kind: KindSend, Spans: []stag.Span{span(on, 0, 8)}}
		r.Hold()
		require.ErrorIs(t, c.table.Close(done(t), on), context.Canceled)
		if posted {
			n, err := c.s.Post(1, func(_ int, place *Request) error {
				*place = r
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.NoError(t, c.flush())
			c.wantDone("as any other", "1 success")
		} else {
			r.Release()
		}
		require.NoError(t, c.table.Close(done(t), on))
	}
}

func TestVERBS_65_RegisterAndBindHonourFences(t *testing.T) {
	c := converse(t, nil)
	on, _ := c.region(64, func(o *stag.Options) { o.Access = lendable })
	register := c.registerOf(2, c.fastRegion(), make([]byte, 8)).with(LocalFence)
	bind := c.bindOf(4, on, 0).with(ReadFence)
	c.post(readOf(1, target), register, readOf(3, target), bind)
	c.wantSegment("a Read", readRequestOf(1, ReadRequest{Src: target}))
	c.wantIdle("holds back all after the fence")
	require.False(t, register.Enable.Valid())
	c.sends("until its Response", tagged(OpReadResponse, true, RemoteAddr{}, ""))
	c.wantSegment("the next Read", readRequestOf(2, ReadRequest{Src: target}))
	require.True(t, register.Enable.Valid())
	c.wantIdle("and so a read fence")
	require.False(t, bind.Enable.Valid())
	c.sends("until that", tagged(OpReadResponse, true, RemoteAddr{}, ""))
	c.wantIdle("nothing is sent for a Bind")
	require.True(t, bind.Enable.Valid())
	c.wantDone("all complete", "1 success", "2 success", "3 success", "4 success")
}

// TestVERBS_12_17_26_WhatIsRefusedEndsTheStream.
func TestVERBS_12_17_26_WhatIsRefusedEndsTheStream(t *testing.T) {
	for expectation, bad := range map[string]func(c *conversation) Request{
		"a registration of an STag that is VALID": func(c *conversation) Request {
			b := c.fastRegion()
			c.post(c.registerOf(1, b, make([]byte, 8)))
			return c.registerOf(2, b, make([]byte, 8))
		},
		"a registration that is too long": func(c *conversation) Request {
			c.post(sendOf(1, ""))
			return c.registerOf(2, c.fastRegion(), make([]byte, 65))
		},
		"a binding outside its region": func(c *conversation) Request {
			c.post(sendOf(1, ""))
			on, _ := c.region(8, func(o *stag.Options) { o.Access = lendable })
			return c.bindOf(2, on, 1)
		},
		"an invalidation of a region to which a window is bound": func(c *conversation) Request {
			on, _ := c.region(8, func(o *stag.Options) { o.Access = lendable })
			c.post(c.bindOf(1, on, 0))
			return Request{ID: 2, Kind: KindInvalidate, Invalidate: on.STag()}
		},
		"an invalidation of a region of another PD": func(c *conversation) Request {
			c.post(sendOf(1, ""))
			r, _ := c.region(8, func(o *stag.Options) { o.Scope = carol })
			return Request{ID: 2, Kind: KindInvalidate, Invalidate: r.STag()}
		},
		"an invalidation with another key": func(c *conversation) Request {
			c.post(sendOf(1, ""))
			r, _ := c.region(8, nil)
			return Request{ID: 2, Kind: KindInvalidate, Invalidate: r.STag() ^ 1}
		},
	} {
		c := converse(t, nil)
		c.post(bad(c), sendOf(3, "behind"))
		err := c.flush()
		require.Error(t, err, expectation)
		c.llp.sent = nil
		require.True(t, c.s.Terminate(err), expectation)
		c.wantTerminate(expectation, bare(transport.RDMAPLocalCatastrophic))
		c.s.End()
		c.wantDone(expectation, "1 success", "2 bind or invalidate error", "3 flushed")
	}
}

func TestVERBS_20_SinkWithAWindowIsNotInvalidated(t *testing.T) {
	c := converse(t, nil)
	sink, mem := c.region(8, func(o *stag.Options) { o.Access = lendable })
	c.post(c.bindOf(1, sink, 0), readOf(2, target, span(sink, 0, 8)).with(Invalidating))
	require.NoError(t, c.flush())
	c.llp.sent = nil
	err := c.fault("the Read has come, but its sink cannot go", transport.RDMAPLocalCatastrophic,
		tagged(OpReadResponse, true, RemoteAddr{sink.STag(), 0x1000}, "hi there"))
	require.Equal(t, "hi there", string(mem))
	require.True(t, sink.Valid())
	require.True(t, c.s.Terminate(err))
	c.s.End()
	c.wantDone("which the Read tells", "1 success", "2 bind or invalidate error")
}

// TestVERBS_31_WindowIsNoSourceOrSink: work requests name the region it is bound to.
func TestVERBS_31_WindowIsNoSourceOrSink(t *testing.T) {
	for expectation, wrong := range map[string]func(w stag.Span) Request{
		"a Send": func(w stag.Span) Request { return Request{ID: 2, Kind: KindSend, Spans: []stag.Span{w}} },
		"a Write": func(w stag.Span) Request {
			return Request{ID: 2, Kind: KindWrite, Spans: []stag.Span{w}, Remote: target}
		},
		"a Read": func(w stag.Span) Request { return readOf(2, target, w) },
	} {
		c := converse(t, nil)
		on, mem := c.region(8, func(o *stag.Options) { o.Access = lendable })
		bind := c.bindOf(1, on, 0)
		c.post(bind, wrong(span(bind.Enable, 0, 8)))
		err := c.flush()
		require.ErrorIs(t, err, stag.ErrInvalid, expectation)
		require.Empty(t, c.llp.sent)
		require.True(t, c.s.Terminate(err), expectation)
		c.wantTerminate(expectation, bare(transport.RDMAPLocalCatastrophic))
		c.s.End()
		c.wantDone(expectation, "1 success", "2 local protection error")
		require.Equal(t, make([]byte, 8), mem)
	}
}

// TestVERBS_18_19_22_RemoteInvalidateOfAWindow: a window belongs to one stream and grants
// a right, so the peer may always invalidate it. The peer may not invalidate the region.
func TestVERBS_18_19_22_RemoteInvalidateOfAWindow(t *testing.T) {
	c := converse(t, nil)
	on, _ := c.region(8, func(o *stag.Options) { o.Access = lendable; o.Scope.Stream = 0 })
	bind := c.bindOf(1, on, 0)
	c.post(bind)
	require.NoError(t, c.flush())
	c.watched = bind.Enable
	c.done, c.watchedIs = nil, nil
	payload := c.receive(4)
	c.sends("Send with Invalidate", invalidating(OpSendInvalidate, 1, bind.Enable.STag(), "done"))
	require.Equal(t, "done", string(payload))
	c.wantReceived("tells of it", Received{Opcode: OpSendInvalidate, Len: 4, Invalidated: true, STag: bind.Enable.STag()})
	require.Equal(t, []bool{false}, c.watchedIs, "whether the window is valid when the Send is delivered")
	require.Zero(t, c.s.Windows().Len())
	require.True(t, on.Valid())
	c.receive(4)
	c.wantFault("once is enough", transport.RDMAPOpNoInvalidate, invalidating(OpSendInvalidate, 2, bind.Enable.STag(), ""))
}

func TestRegisterAndBindNeedWhatTheyEnable(t *testing.T) {
	c := converse(t, nil)
	on, _ := c.region(8, func(o *stag.Options) { o.Access = lendable })
	bind := c.bindOf(1, on, 0)
	for _, r := range []Request{
		{Kind: KindRegister},
		{Kind: KindBind, Spans: bind.Spans},
		{Kind: KindBind, Enable: bind.Enable},
		{Kind: KindBind, Enable: bind.Enable, Spans: []stag.Span{{Mem: make([]byte, 8), Len: 8}}},
		{Kind: KindBind, Enable: bind.Enable, Spans: append(bind.Spans, bind.Spans...)},
	} {
		_, err := c.tryPost(r)
		require.ErrorIs(t, err, ErrRequest)
	}
}

// TestVERBS_15_InvalidateAfterAResponse: what the batch refers to on behalf of the peer must
// leave before it can be invalidated.
func TestVERBS_15_InvalidateAfterAResponse(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(8, nil)
	copy(mem, "what was")
	c.sends("a Read Request", readRequestOf(1, ReadRequest{Sink: target, Size: 8, Src: RemoteAddr{r.STag(), 0x1000}}))
	c.post(Request{ID: 1, Kind: KindInvalidate, Invalidate: r.STag()}, sendOf(2, "revoked"))
	flushed := make(chan error, 1)
	go func() { flushed <- c.flush() }()
	select {
	case err := <-flushed:
		require.NoError(t, err)
	case <-time.After(5 * time.Second):
		require.Fail(t, "the sender waits for itself")
	}
	c.wantSegment("the Response", tagged(OpReadResponse, true, target, "what was"))
	c.wantSegment("the Send after the invalidation", untagged(OpSend, QNSend, 1, "revoked"))
	require.False(t, r.Valid())
	c.wantDone("all is done", "1 success", "2 success")
}

// TestRDMAP_56_InvalidatedUntilItIsEnabledAgain: an STag that the peer has invalidated, of a
// region or of a window, can be used again when this side has enabled it again.
func TestRDMAP_56_InvalidatedUntilItIsEnabledAgain(t *testing.T) {
	for what, enabling := range map[string]func(c *conversation) func(id uint64) Request{
		"a region": func(c *conversation) func(id uint64) Request {
			b := c.fastRegion()
			return func(id uint64) Request { return c.registerOf(id, b, make([]byte, 8)) }
		},
		"a window": func(c *conversation) func(id uint64) Request {
			w, err := c.table.AllocateWindow(alice.PD)
			require.NoError(c, err)
			on, _ := c.region(8, func(o *stag.Options) { o.Access = lendable })
			return func(id uint64) Request {
				r, err := w.Prepare(8, stag.RemoteWrite, 0x1000, nil)
				require.NoError(c, err)
				return Request{ID: id, Kind: KindBind, Enable: r, Spans: []stag.Span{{Region: on}}}
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			c := converse(t, nil)
			enable := enabling(c)
			access := func(st stag.STag) stag.Violation {
				r, _, v := c.table.Pin(alice, st, stag.RemoteWrite, 0x1000, 8)
				if v == stag.None {
					r.Unpin()
				}
				return v
			}
			var dead []stag.STag
			for i := range 3 {
				request := enable(uint64(i))
				require.Equal(t, stag.InvalidSTag, access(request.Enable.STag()), "not before it is enabled")
				c.post(request)
				require.NoError(t, c.flush())
				st := request.Enable.STag()
				require.Equal(t, stag.None, access(st), "enabled")
				c.receive(0)
				c.sends("the peer invalidates it", invalidating(OpSendInvalidate, ddp.MSN(i+1), st, ""))
				dead = append(dead, st)
				for _, st := range dead {
					require.Equal(t, stag.InvalidSTag, access(st), "and it stays so")
				}
			}
			c.receive(0)
			c.wantFault("also for the peer", transport.DDPInvalidSTag, tagged(OpWrite, true, RemoteAddr{dead[2], 0x1000}, "x"))
		})
	}
}
