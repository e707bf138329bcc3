package rdmap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stag"
)

// RFC 7306 sections 5.4 and 7: what comes before what.

func TestEXT_22_ResponsesFollowAnImmediateThatCompleted(t *testing.T) {
	c, at, _ := counter(t, func(cfg *Config) { cfg.Window = 8 })
	c.receive(0)
	require.NoError(t, c.s.Segment(1, atomicRequestOf(1, add(at, 1))))
	require.NoError(t, c.s.Segment(2, readRequestOf(2, ReadRequest{Sink: target})))
	c.wantIdle("the Immediate before them has not come")
	require.Empty(t, c.received)
	require.NoError(t, c.s.Segment(0, immediate(1, "12345678")))
	require.Len(t, c.received, 1, "it is complete")
	c.wantSegment("and only then they are answered", atomicResponseOf(1, 0xabcd0001, 100))
	c.wantSegment("each", tagged(OpReadResponse, true, target, ""))
}

func TestEXT_59_61_NothingIsProcessedBeforeWhatCameEarlier(t *testing.T) {
	c, at, value := counter(t, func(cfg *Config) { cfg.Window = 8 })
	c.receive(8)
	require.NoError(t, c.s.Segment(2, atomicRequestOf(1, add(at, 1))))
	c.wantIdle("it is placed, but not delivered")
	require.Equal(t, uint64(100), *value)
	require.NoError(t, c.s.Segment(1, tagged(OpWrite, true, at, "\x00\x00\x00\x00\x00\x00\x00\x00")))
	require.Zero(t, *value, "the Write is placed")
	c.wantIdle("the Send before it has not come")
	require.NoError(t, c.s.Segment(0, untagged(OpSend, QNSend, 1, "send")))
	require.Len(t, c.received, 1)
	c.wantSegment("now it is done, after the Write", atomicResponseOf(1, 0xabcd0001, 0))
	require.Equal(t, uint64(1), *value)
}

func TestEXT_60_62_LaterMessagesMayBeAhead(t *testing.T) {
	c, at, value := counter(t, nil)
	c.receive(8)
	c.sends("an Atomic, a Write to another place, a Send and an Immediate",
		atomicRequestOf(1, add(at, 1)), tagged(OpWrite, true, RemoteAddr{at.STag, at.TO + 8}, "written"), untagged(OpSend, QNSend, 1, "send"))
	require.Len(t, c.received, 1, "the Send completes before the Atomic is answered")
	require.Equal(t, uint64(100), *value)
	c.wantSegment("which follows", atomicResponseOf(1, 0xabcd0001, 100))
}

func TestEXT_33_56_64_AtomicsAreDoneAndAnsweredInOrder(t *testing.T) {
	c, at, value := counter(t, nil)
	c.sends("each needs the one before", atomicRequestOf(1, swapIf(at, 100, 1)), atomicRequestOf(2, swapIf(at, 1, 2)), atomicRequestOf(3, add(at, 5)), atomicRequestOf(4, swapIf(at, 7, 8)))
	c.wantSegment("1", atomicResponseOf(1, 0, 100))
	c.wantSegment("2", atomicResponseOf(2, 0, 1))
	c.wantSegment("3", atomicResponseOf(3, 0xabcd0005, 2))
	c.wantSegment("4", atomicResponseOf(4, 0, 7))
	require.Equal(t, uint64(8), *value)
}

func TestEXT_33_64_SecondAtomicWaitsForTheFirstResponse(t *testing.T) {
	c, at, value := counter(t, nil)
	c.llp.capacity = 1
	c.sends("two Atomics", atomicRequestOf(1, add(at, 1)), atomicRequestOf(2, add(at, 10)))
	more, err := c.s.Fill(c.llp)
	require.NoError(t, err)
	require.True(t, more)
	require.Equal(t, [][]byte{atomicResponseOf(1, 0xabcd0001, 100)}, c.llp.sent, "there is room for one response")
	c.llp.sent = nil
	require.NoError(t, c.llp.Flush(true))
	c.s.Flushed()
	c.wantSegment("the second saw the first", atomicResponseOf(2, 0xabcd000a, 101))
	require.Equal(t, uint64(111), *value, "a response that did not fit at first was not made twice")
}

func TestEXT_56_65_ReadsAndAtomicsAreAnsweredInTheOrderOfTheRequests(t *testing.T) {
	c, at, value := counter(t, nil)
	read := func(msn ddp.MSN) []byte {
		return readRequestOf(msn, ReadRequest{Sink: target, Size: 8, Src: RemoteAddr{at.STag, at.TO + 8}})
	}
	answer := tagged(OpReadResponse, true, target, "\x00\x00\x00\x00\x00\x00\x00\x00")
	c.sends("Read, Atomic, Read, Atomic", read(1), atomicRequestOf(2, add(at, 1)), read(3), atomicRequestOf(4, add(at, 2)))
	c.wantSegment("a Read", answer)
	c.wantSegment("an Atomic", atomicResponseOf(1, 0xabcd0001, 100))
	c.wantSegment("a Read", answer)
	c.wantSegment("an Atomic", atomicResponseOf(2, 0xabcd0002, 101))
	require.Equal(t, uint64(103), *value)
}

func TestEXT_65_AtomicsWaitForTheResponsesOfExtensions(t *testing.T) {
	e := newEcho()
	c, at, value := counter(t, func(cfg *Config) { cfg.Extensions = []*Extension{&e.Extension} })
	c.sends("a slow extension, and an Atomic", untagged(opEcho, QNRequest, 1, "slow"), atomicRequestOf(2, add(at, 1)))
	c.wantIdle("the Atomic waits")
	require.Equal(t, uint64(100), *value, "and is not done early")
	e.reply(0)
	c.wantSegment("the slow one", untagged(opEchoed, QNResponse, 1, "slow"))
	c.wantSegment("and the Atomic, with the next number of QN 3", atomicResponseOf(2, 0xabcd0001, 100))
}

func TestEXT_58_63_NothingIsKnownBeforeTheResponse(t *testing.T) {
	c := converse(t, nil)
	c.post(atomicOf(1, add(target, 1)))
	require.NoError(t, c.flush())
	c.wantDone("it is out, and that is all")
	require.True(t, c.s.Terminate(stag.ErrBounds))
	c.s.End()
	c.wantDone("without a response it does not succeed", "1 flushed")
	require.Empty(t, c.olds)
}
