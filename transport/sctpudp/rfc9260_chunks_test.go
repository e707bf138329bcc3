package sctpudp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport/sctp"
)

// TestTagOfAnEnd: an ABORT and a SHUTDOWN COMPLETE have our tag, or with the T bit the peer's tag (RFC 9260 section
// 8.5.1). Any other is discarded, and so is an ABORT with a format error (section 3.3.7).
func TestTagOfAnEnd(t *testing.T) {
	for name, c := range map[string]struct {
		tag    uint32
		chunks []byte
		ends   bool
	}{
		"our tag":                 {victimTag, appendChunk(nil, chunkAbort, 0, nil), true},
		"our tag, a cause":        {victimTag, appendChunk(nil, chunkAbort, 0, octets("000c 0006 6869 0000")), true},
		"other flags":             {victimTag, appendChunk(nil, chunkAbort, 0xfe, nil), true},
		"our tag and T":           {victimTag, appendChunk(nil, chunkAbort, flagReflected, nil), false},
		"the peer's tag and T":    {attackerTag, appendChunk(nil, chunkAbort, flagReflected, nil), true},
		"the peer's tag":          {attackerTag, appendChunk(nil, chunkAbort, 0, nil), false},
		"a cause without its end": {victimTag, appendChunk(nil, chunkAbort, 0, octets("000c 0009 6869 0000")), false},
		"a cause of no length":    {victimTag, appendChunk(nil, chunkAbort, 0, octets("000c 0003")), false},
		"half a cause":            {victimTag, appendChunk(nil, chunkAbort, 0, octets("000c")), false},
	} {
		t.Run(name, func(t *testing.T) {
			guarded(t, func(x *victim) {
				x.says(c.tag, c.chunks)
				require.Equal(x, c.ends, x.failure() != nil)
			})
		})
	}
	guarded(t, func(x *victim) {
		before := x.tsn()
		complete := appendChunk(nil, chunkShutdownComplete, flagReflected, nil)
		x.says(attackerTag, join(complete, data(flagsMessage, before, 3, sctp.PPIDControl, octets("0000 0001"))))
		require.Equal(x, before, x.tsn(), "what stands behind it has the wrong tag")
	})
}

// TestChunksThatAreNotKnown: the upper bits of their types decide what becomes of the rest of the packet, and whether they
// are reported (RFC 9260 section 3.2).
func TestChunksThatAreNotKnown(t *testing.T) {
	for kind, c := range map[byte]struct{ stops, reported bool }{
		0x0f: {true, false}, 0x3f: {true, false},
		0x40: {true, true}, 0x7f: {true, true},
		0x80: {false, false}, 0xbf: {false, false},
		0xc0: {false, true}, 0xff: {false, true},
		chunkHeartbeatAck: {false, false}, chunkError: {false, false}, chunkCookieAck: {false, false}, 12: {false, false}, 13: {false, false},
	} {
		guarded(t, func(x *victim) {
			x.answers()
			before := x.tsn()
			unknown := appendChunk(nil, kind, 3, octets("aabbcc"))
			x.says(victimTag, join(unknown, unknown, data(flagsMessage, before, 3, sctp.PPIDControl, octets("0000 0001"))))
			require.NoError(x, x.failure())
			require.Equal(x, c.stops, x.tsn() == before, "%#x", kind)
			errors := x.chunks(chunkError)
			if !c.reported {
				require.Empty(x, errors, "%#x", kind)
				return
			}
			require.Equal(x, []chunk{join(octets("0900 000f 0006 000b"), unknown[:7])}, errors, "%#x: once for a packet", kind)
		})
	}
	guarded(t, func(x *victim) { // one that is too long for the report
		x.answers()
		x.says(victimTag, appendChunk(nil, 0xfe, 0, make([]byte, maxPacket-headerSize-chunkHeaderSize)))
		got := x.answers()
		require.Len(x, got, 1)
		require.True(x, valid(got[0]))
		require.LessOrEqual(x, len(got[0]), x.a.packetSize)
	})
}

// TestDATAWithoutUserData ends the association, and the ABORT says why (RFC 9260 section 6.2).
func TestDATAWithoutUserData(t *testing.T) {
	guarded(t, func(x *victim) {
		x.answers()
		x.says(victimTag, data(flagsMessage, 0x01020304, 3, sctp.PPIDSegment, nil))
		require.ErrorContains(x, x.failure(), "no user data")
		require.Equal(x, []chunk{octets("0600 000c 0009 0008 01020304")}, x.chunks(chunkAbort))
	})
}

// TestDATAThatIsAcknowledgedAtOnce: the first of an association (RFC 9260 section 5.1), one that has come before
// where nothing new comes with it (section 6.2), and session control. Others may wait for 200 ms.
func TestDATAThatIsAcknowledgedAtOnce(t *testing.T) {
	initiate := func(tsn uint32) []byte { return data(flagsMessage, tsn, 3, sctp.PPIDControl, octets("0000 0001")) }
	segment := func(tsn uint32) []byte { return data(flagsMessage, tsn, 3, sctp.PPIDSegment, octets("0001 41")) }
	guarded(t, func(x *victim) {
		first := x.tsn()
		for _, c := range []struct {
			why     string
			chunks  []byte
			instant int
		}{
			{"the first one", initiate(first), 1},
			{"a new one", segment(first + 1), 0},
			{"one that has come before", segment(first + 1), 1},
			{"one that has come before, again", initiate(first), 1},
			{"a new one behind it", segment(first + 2), 0},
			{"session control", data(flagsMessage, first+3, 3, sctp.PPIDControl, octets("0002 0004")), 1},
		} {
			x.answers()
			x.says(victimTag, c.chunks)
			require.Len(x, x.chunks(chunkSack), c.instant, c.why)
			time.Sleep(time.Second)
		}
	})
}

// TestAbortSaysWhy: with the causes of RFC 9260 section 3.3.10. Of a peer that is gone there is none.
func TestAbortSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(x *victim)
		want string
	}{
		"an ordered message": {func(x *victim) { x.says(victimTag, data(3, 0, 3, 16, octets("0000 41"))) }, "0600 0008 000d 0004"},
		"the user":           {func(x *victim) { x.session(3); x.l.End() }, "0600 0008 000c 0004"},
		"nothing comes":      {func(*victim) { time.Sleep(time.Minute) }, "0600 0004"},
	} {
		t.Run(name, func(t *testing.T) {
			guarded(t, func(x *victim) {
				c.end(x)
				require.Equal(x, []chunk{octets(c.want)}, x.chunks(chunkAbort))
			})
		})
	}
}
