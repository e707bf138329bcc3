package rdmap

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

// TestPhaseNeverGoesBack checks the table of phase.
func TestPhaseNeverGoesBack(t *testing.T) {
	refuse := func(c *conversation) { c.s.Refuse() }
	shut := func(c *conversation) { c.s.Shut() }
	comesLate := func(c *conversation) { _ = c.send(untagged(OpSend, QNSend, 1, "late")) }
	terminate := func(c *conversation) { c.s.Terminate(transport.Faultf(transport.RDMAPOpcode, "wrong")) }
	end := func(c *conversation) { c.s.End() }
	terminated := func(c *conversation) {
		_ = c.take(c.seq, terminateOf(bare(transport.RDMAPOpcode)))
	}
	for from, v := range map[phase]struct {
		reach []func(*conversation)
		after [3]phase // Refuse, Shut, a segment
	}{
		phaseOpen:     {nil, [3]phase{phaseDraining, phaseShut, phaseOpen}},
		phaseDraining: {[]func(*conversation){refuse}, [3]phase{phaseDraining, phaseShut, phaseDraining}},
		phaseShut:     {[]func(*conversation){refuse, shut}, [3]phase{phaseShut, phaseShut, phaseLate}},
		phaseLate:     {[]func(*conversation){shut, comesLate}, [3]phase{phaseLate, phaseLate, phaseLate}},
		phaseEnding:   {[]func(*conversation){terminate}, [3]phase{phaseEnding, phaseEnding, phaseEnding}},
	} {
		reached := func() *conversation {
			c := converse(t, nil)
			c.receive(8)
			for _, step := range v.reach {
				step(c)
			}
			require.Equal(t, from, c.s.in())
			return c
		}
		for i, step := range []func(*conversation){refuse, shut, comesLate} {
			c := reached()
			step(c)
			require.Equal(t, v.after[i], c.s.in(), "from %d by step %d", from, i)
		}
		for i, step := range []func(*conversation){terminate, end, terminated} {
			if i == 2 && from == phaseLate {
				continue // nothing of the peer is taken
			}
			c := reached()
			step(c)
			require.Equal(t, phaseEnding, c.s.in(), "from %d by end %d", from, i)
		}
	}
}

func TestRefusedStreamCarriesOutWhatWasPosted(t *testing.T) {
	c := converse(t, nil)
	c.receive(8)
	c.post(sendOf(1, "before"))
	c.s.Refuse()
	n, err := c.tryPost(sendOf(2, "behind"))
	require.ErrorIs(t, err, ErrEnded)
	require.Zero(t, n)
	c.sends("the peer's messages are taken", untagged(OpSend, QNSend, 1, "hello"), readRequestOf(1, ReadRequest{Sink: target}))
	c.wantReceived("and delivered", Received{Opcode: OpSend, Len: 5})
	c.wantSegment("and its Reads answered", tagged(OpReadResponse, true, target, ""))
	c.wantSegment("what was posted goes out", untagged(OpSend, QNSend, 1, "before"))
	c.wantDone("and completes", "1 success")
}

// TestRefuseAgainstPost: when Refuse has returned, what is posted is known.
func TestRefuseAgainstPost(t *testing.T) {
	for range 200 {
		c := converse(t, func(o *Config) { o.SendDepth = 64 })
		var posters sync.WaitGroup
		var posted [2]uint64
		for i := range posted {
			posters.Go(func() {
				for {
					n, err := c.tryPost(sendOf(1, ""), sendOf(2, ""))
					posted[i] += uint64(n)
					if err != nil {
						require.Condition(t, func() bool { return errors.Is(err, ErrEnded) || errors.Is(err, ErrQueueFull) })
						return
					}
				}
			})
		}
		c.s.Refuse()
		known, _ := c.s.Counts()
		posters.Wait()
		require.Equal(t, posted[0]+posted[1], known, "nothing is posted after it")
	}
}

// What may come after the end of our own half (draft-hilland-rddp-verbs section 6.2.5).
func TestVERBS_41_47_WhatMayComeAfterShut(t *testing.T) {
	c := converse(t, nil)
	c.s.Shut()
	_, err := c.tryPost(sendOf(1, ""))
	require.ErrorIs(t, err, ErrEnded, "nothing is posted any more")
	empty := tagged(OpWrite, true, RemoteAddr{}, "")
	c.sends("an empty Write means nothing", empty)
	batch := &arrivals{empty, terminateOf(bare(transport.RDMAPOpcode)), empty, untagged(OpSend, QNSend, 1, "x")}
	require.NoError(t, c.s.Segments(c.seq, batch))
	require.Empty(t, *batch, "nothing is late after a Terminate")
	require.Len(t, c.terminated, 1, "which is heard")
	require.Equal(t, phaseEnding, c.s.in())
}

func TestVERBS_47_LateSegmentIsRefusedOnce(t *testing.T) {
	for that, late := range map[string]func(c *conversation, at RemoteAddr) []byte{
		"a Send":                 func(*conversation, RemoteAddr) []byte { return untagged(OpSend, QNSend, 1, "late") },
		"a Write":                func(_ *conversation, at RemoteAddr) []byte { return tagged(OpWrite, true, at, "late") },
		"a Read":                 func(*conversation, RemoteAddr) []byte { return readRequestOf(1, ReadRequest{Sink: target}) },
		"an empty Read Response": func(*conversation, RemoteAddr) []byte { return tagged(OpReadResponse, true, RemoteAddr{}, "") },
		"a tagged Terminate":     func(_ *conversation, at RemoteAddr) []byte { return tagged(OpTerminate, true, at, "late") },
		"no header":              func(*conversation, RemoteAddr) []byte { return []byte{0} },
		"half a Write":           func(_ *conversation, at RemoteAddr) []byte { return tagged(OpWrite, true, at, "")[:ddp.TaggedLen-1] },
	} {
		for _, alone := range []bool{true, false} {
			c := converse(t, nil)
			r, mem := c.region(8, nil)
			buffer := c.receive(8)
			c.s.Shut()
			segment := late(c, RemoteAddr{r.STag(), 0x1000})
			empty := tagged(OpWrite, true, RemoteAddr{}, "")
			take := func(segment []byte) error {
				if alone {
					return c.send(segment)
				}
				batch := &arrivals{empty, segment, empty}
				err := c.s.Segments(c.seq, batch)
				c.seq += uint64(3 - len(*batch))
				return err
			}
			require.ErrorIs(t, take(segment), ErrLate, that)
			require.NoError(t, take(segment), "%s: once", that)
			c.sends("and nothing is heard any more", terminateOf(bare(transport.RDMAPOpcode)))
			require.Empty(t, c.terminated)
			require.Empty(t, c.received)
			require.Equal(t, make([]byte, 8), mem)
			require.Equal(t, make([]byte, 8), buffer)
			c.wantIdle("nothing is answered")
			require.True(t, c.s.Terminate(transport.Faultf(transport.RDMAPOpcode, "wrong")), "the stream is not ending yet")
		}
	}
}

// TestShutBetweenTwoSegmentsOfABatch: the segment after Shut is late, and the segments before it are not.
func TestShutBetweenTwoSegmentsOfABatch(t *testing.T) {
	c := converse(t, nil)
	r, mem := c.region(8, nil)
	at := RemoteAddr{r.STag(), 0x1000}
	batch := &shutting{arrivals{tagged(OpWrite, true, at, "1"), tagged(OpWrite, true, at, "2"), tagged(OpWrite, true, at, "3")}, c.s}
	require.ErrorIs(t, c.s.Segments(0, batch), ErrLate)
	require.Equal(t, "2", string(mem[:1]))
	require.Empty(t, batch.arrivals, "the third was presented, and not taken")
}

// A shutting is a batch whose stream is shut before its last segment.
type shutting struct {
	arrivals
	s *Stream
}

func (b *shutting) Next() []byte {
	if len(b.arrivals) == 1 {
		b.s.Shut()
	}
	return b.arrivals.Next()
}

// What was predicted before Shut counts as having come before it.
func TestNothingIsPredictedAfterShut(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(64<<10, func(o *stag.Options) { o.Access = stag.LocalWrite })
	c.post(readOf(1, target, span(r, 0, 64<<10)))
	require.NoError(t, c.flush())
	require.NotEmpty(t, c.s.Predict(nil, 32<<10, 64<<10))
	c.s.Unpin()
	c.s.Shut()
	require.Empty(t, c.s.Predict(nil, 32<<10, 64<<10))
}
