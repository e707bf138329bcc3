package rdmap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
)

// An admitter answers for Reads: with Go, unless told otherwise.
type admitter struct {
	c       *conversation
	answers map[uint64]Admission // by ID
	asked   []uint64
	inRun   []uint64
}

// admitting starts a conversation with an admitter.
func admitting(t *testing.T, change func(*Config)) (*conversation, *admitter) {
	a := &admitter{answers: make(map[uint64]Admission)}
	a.c = converse(t, func(c *Config) {
		c.Admit = a.admit
		if change != nil {
			change(c)
		}
	})
	return a.c, a
}

func (a *admitter) admit(r *Request) Admission {
	require.False(a.c, a.c.s.mu.TryLock(), "the lock is held")
	require.Equal(a.c, KindRead, r.Kind)
	require.NotZero(a.c, r.Len)
	a.asked = append(a.asked, r.ID)
	if r.InRun {
		a.inRun = append(a.inRun, r.ID)
	}
	if answer, ok := a.answers[r.ID]; ok {
		return answer
	}
	return Go
}

// wantAsked compares the IDs of the Reads that Admit was asked for since the last time.
func (a *admitter) wantAsked(that string, ids ...uint64) {
	a.c.Helper()
	require.Equal(a.c, ids, a.asked, that)
	a.asked = nil
}

// reads returns n Reads of four octets each, with IDs from 1 on, into consecutive parts of r.
func reads(r *stag.Region, n int) (rs []Request) {
	for i := range n {
		rs = append(rs, readOf(uint64(i+1), RemoteAddr{STag: 0x100, TO: uint64(i)}, span(r, 4*i, 4)))
	}
	return rs
}

// wantReads checks which of these Reads are sent now, the first with this MSN.
func (c *conversation) wantReads(that string, msn ddp.MSN, r *stag.Region, ids ...uint64) {
	c.Helper()
	for _, id := range ids {
		i := id - 1
		c.wantSegment(that, readRequestOf(msn, ReadRequest{
			Sink: RemoteAddr{STag: r.STag(), TO: 0x1000 + 4*i}, Size: 4, Src: RemoteAddr{STag: 0x100, TO: i},
		}))
		msn++
	}
	c.wantIdle(that)
}

// answer sends the Read Response for the Read with this ID.
func (c *conversation) answer(r *stag.Region, id uint64) {
	c.Helper()
	c.sends("a response", tagged(OpReadResponse, true, RemoteAddr{STag: r.STag(), TO: 0x1000 + 4*(id-1)}, "data"))
}

func TestSOL_17_ReadRequestComesAfterTheGrant(t *testing.T) {
	for what, flags := range map[string]Flags{"in a run": 0, "by itself": ReadFence} {
		t.Run(what, func(t *testing.T) {
			c, a := admitting(t, nil)
			r, _ := c.region(64, nil)
			a.answers[1] = Wait
			c.post(reads(r, 1)[0].with(flags))
			c.wantIdle("it waits")
			require.Zero(t, c.s.Outstanding())
			a.asked = nil
			c.wantIdle("and nothing changes")
			require.NotEmpty(t, a.asked, "asked again")
			a.answers[1], a.asked = Go, nil
			require.True(t, c.s.Pending(), "it has its grant")
			c.wantReads("it has its grant", 1, r, 1)
			c.answer(r, 1)
			c.wantDone("as ever", "1 success")
			a.wantAsked("and no more after Go", 1)
		})
	}
}

// TestSOL_17_OctetsAreThoseWithoutAdmit, in runs, in between, and with Reads that need no grant.
func TestSOL_17_OctetsAreThoseWithoutAdmit(t *testing.T) {
	segments := func(change func(*Config)) [][]byte {
		c := converse(t, change)
		r, _ := c.region(64, nil)
		rs := reads(r, 4)
		rs = append(rs, sendOf(5, "send"), readOf(6, RemoteAddr{}), atomicOf(7, AtomicRequest{}), readOf(8, RemoteAddr{}, span(r, 0, 8)), writeOf(9, RemoteAddr{}, "write"))
		c.post(rs...)
		require.NoError(t, c.flush())
		for id := range uint64(4) {
			c.answer(r, id+1)
		}
		require.NoError(t, c.flush())
		for i := range c.llp.sent { // regions have other STags in each conversation
			if len(c.llp.sent[i]) > 18 && opcodeOf(c.llp.sent[i][1]) == OpReadRequest {
				clear(c.llp.sent[i][18:22])
			}
		}
		return c.llp.sent
	}
	var asked []uint64
	want := segments(nil)
	require.Len(t, want, 9)
	require.Equal(t, want, segments(func(c *Config) {
		c.Admit = func(r *Request) Admission {
			asked = append(asked, r.ID)
			return Go
		}
	}))
	require.Equal(t, []uint64{1, 2, 3, 4, 8}, asked, "once for each Read with octets, in order")
}

func TestSOL_17_AskedWhenNothingElseHoldsTheRead(t *testing.T) {
	c, a := admitting(t, func(c *Config) { c.ORD = 3 })
	r, _ := c.region(64, nil)
	rs := reads(r, 5)
	rs[4].Flags = LocalFence
	c.post(rs...)
	c.wantReads("as many as the ORD permits", 1, r, 1, 2, 3)
	a.wantAsked("for no more", 1, 2, 3)
	require.Equal(t, []uint64{3}, a.inRun, "it is asked for just after the second one")
	c.answer(r, 1)
	c.wantReads("another one", 4, r, 4)
	a.wantAsked("for the one that has a slot", 4)
	c.answer(r, 2)
	c.answer(r, 3)
	c.wantIdle("the fence holds the last one")
	a.wantAsked("so that it must not hold window")
	c.answer(r, 4)
	c.wantReads("the last one", 5, r, 5)
	a.wantAsked("now", 5)
}

func TestSOL_19_OrderIsKept(t *testing.T) {
	c, a := admitting(t, nil)
	r, _ := c.region(64, nil)
	rs := reads(r, 4)
	a.answers[2] = Wait
	c.post(rs[0], rs[1], sendOf(9, "behind"), rs[2])
	c.wantReads("what is in front goes", 1, r, 1)
	c.answer(r, 1)
	c.wantIdle("all behind waits")
	c.wantDone("the first", "1 success")
	a.answers[2] = Go
	c.wantSegment("the Read", readRequestOf(2, ReadRequest{
		Sink: RemoteAddr{STag: r.STag(), TO: 0x1004}, Size: 4, Src: RemoteAddr{STag: 0x100, TO: 1},
	}))
	c.wantSegment("the Send behind it", untagged(OpSend, QNSend, 1, "behind"))
	c.wantReads("and the other Read", 3, r, 3)
	c.answer(r, 2)
	c.answer(r, 3)
	c.wantDone("in order", "2 success", "9 success", "3 success")
}

// TestSOL_19_ResponsesAreNotHeldUp: a Read that waits holds up the requests behind it and nothing else.
func TestSOL_19_ResponsesAreNotHeldUp(t *testing.T) {
	c, a := admitting(t, nil)
	r, mem := c.region(64, nil)
	copy(mem, "octets")
	a.answers[1] = Wait
	c.post(reads(r, 1)...)
	c.wantIdle("it waits")
	c.sends("a Read of the peer", readRequestOf(1, ReadRequest{Sink: RemoteAddr{STag: 7}, Size: 6, Src: RemoteAddr{STag: r.STag(), TO: 0x1000}}))
	c.wantSegment("is answered", tagged(OpReadResponse, true, RemoteAddr{STag: 7}, "octets"))
}

func TestSOL_20_SkippedReadIsNotSent(t *testing.T) {
	for what, flags := range map[string]Flags{"in a run": 0, "by itself": ReadFence} {
		t.Run(what, func(t *testing.T) {
			c, a := admitting(t, nil)
			r, _ := c.region(64, nil)
			rs := reads(r, 4)
			rs[1].Flags = flags
			a.answers[2] = Skip
			c.post(rs[0], rs[1], rs[2], sendOf(9, "behind"))
			require.NoError(t, c.flush())
			if flags != 0 {
				c.answer(r, 1)
			}
			c.wantSegment("in front", readRequestOf(1, ReadRequest{Sink: RemoteAddr{STag: r.STag(), TO: 0x1000}, Size: 4, Src: RemoteAddr{STag: 0x100}}))
			c.wantSegment("behind, with the next MSN", readRequestOf(2, ReadRequest{
				Sink: RemoteAddr{STag: r.STag(), TO: 0x1008}, Size: 4, Src: RemoteAddr{STag: 0x100, TO: 2},
			}))
			c.wantSegment("and so on", untagged(OpSend, QNSend, 1, "behind"))
			if flags == 0 {
				require.Empty(t, c.done, "it completes in its turn")
				c.answer(r, 1)
			}
			c.answer(r, 3)
			c.wantDone("in order, and the stream goes on", "1 success", "2 dispatch timeout", "3 success", "9 success")
			require.True(t, r.Valid())
			a.answers[2] = Go
			a.asked = nil
			c.post(rs[1])
			c.wantReads("the request that is used again is asked for again", 3, r, 2)
			a.wantAsked("once", 2)
		})
	}
}

// TestSOL_20_SkippedReadDoesNotInvalidate: nothing is done for it.
func TestSOL_20_SkippedReadDoesNotInvalidate(t *testing.T) {
	c, a := admitting(t, nil)
	r, _ := c.region(64, nil)
	a.answers[1] = Skip
	c.post(reads(r, 1)[0].with(Invalidating))
	c.wantIdle("nothing is sent")
	c.wantDone("at once", "1 dispatch timeout")
	require.True(t, r.Valid())
}

func TestSOL_21_EndFlushesWaitingReads(t *testing.T) {
	c, a := admitting(t, nil)
	r, _ := c.region(64, nil)
	a.answers[2] = Wait
	c.post(reads(r, 3)...)
	c.wantReads("the first", 1, r, 1)
	c.s.End()
	c.wantDone("all", "1 flushed", "2 flushed", "3 flushed")
}

// TestSOL_22_AnsweredInBatchDone: the receiving goroutine completes a Read, unless that has to wait
// for the sending goroutine.
func TestSOL_22_AnsweredInBatchDone(t *testing.T) {
	c, _ := admitting(t, nil)
	r, _ := c.region(64, nil)
	rs := reads(r, 4)
	c.post(rs[0])
	c.wantReads("the first", 1, r, 1)
	c.answer(r, 1)
	require.Equal(t, []uint64{1}, c.answered)

	c.post(writeOf(9, RemoteAddr{}, "write"), rs[1])
	_, err := c.s.Fill(c.llp)
	require.NoError(t, err)
	require.NoError(t, c.s.Flush(c.llp))
	c.answer(r, 2)
	c.wantDone("the Write is not known to be sent yet", "1 success")
	c.s.Flushed()
	c.wantDone("now it is", "9 success", "2 success")
	c.post(rs[2])
	require.NoError(t, c.flush())
	c.s.End()
	c.wantDone("flushed", "3 flushed")
	require.Equal(t, []uint64{1}, c.answered, "no other one")
}
