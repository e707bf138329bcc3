package ddp

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

// A message that lacks an octet is not delivered: the ULP would take what was in its buffer for the peer's data.
func TestDDP_47_67_MessageWithAHoleIsNotDelivered(t *testing.T) {
	type segments []struct {
		mo      uint32
		payload string
	}
	for name, v := range map[string]struct {
		before segments
		mo     uint32 // of the last one
		last   string
	}{
		"the beginning":                   {nil, 3, "def"},
		"the beginning, and an empty end": {nil, 3, ""},
		"something in the middle":         {segments{{0, "ab"}}, 3, "def"},
		"between two others":              {segments{{0, "ab"}, {3, "d"}}, 4, "ef"},
		"the end comes first":             {segments{{2, "cdef"}}, 0, "ab"},
		"an octet comes twice":            {segments{{0, "abc"}}, 2, "cdef"},
		"all of it comes twice":           {segments{{0, "abc"}}, 0, "abcdef"},
		"as many octets, but not these":   {segments{{0, "ab"}, {3, "de"}}, 4, "ef"},
	} {
		t.Run(name, func(t *testing.T) {
			c := converse(t, 0)
			buf := []byte("secret-of-another")
			c.post(0, buf)
			c.post(0, make([]byte, 8))
			for _, s := range v.before {
				c.sends("a part", untagged(false, 0, 1, s.mo, []byte(s.payload)))
			}
			was := string(buf)
			c.wantFault("the last one", transport.DDPOffset, untagged(true, 0, 1, v.mo, []byte(v.last)))
			require.Equal(t, was, string(buf), "the segment is not placed")
			require.Empty(t, c.delivered)
		})
	}
}

func TestDDP_67_OctetThatComesTwiceIsAFault(t *testing.T) {
	for name, s := range map[string]struct {
		mo uint32
		n  int
	}{
		"in front of a hole":       {0, 1},
		"into a later part":        {5, 2},
		"from within a later part": {7, 4},
		"all of a later part":      {6, 2},
		"across the first part":    {3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := converse(t, 0)
			c.post(0, make([]byte, 100))
			c.sends("the beginning", untagged(false, 0, 1, 0, octets(4)))
			c.sends("a later part", untagged(false, 0, 1, 6, octets(2)))
			c.sends("nothing", untagged(false, 0, 1, 7, nil))
			c.wantFault("twice", transport.DDPOffset, untagged(false, 0, 1, s.mo, octets(s.n)))
		})
	}
}

// A sender should keep the order of the offsets, but need not.
func TestDDP_43_47_SegmentsInAnyOrderMakeAMessage(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const size = 40
	for range 300 {
		c := converse(t, 0)
		buf := make([]byte, size+4)
		c.post(0, buf)
		c.post(0, make([]byte, 4))
		end := random.IntN(size)
		for _, i := range random.Perm((end + 2) / 3) {
			part := octets(size)[3*i : min(3*i+3, end)]
			c.sends("a part", untagged(false, 0, 1, uint32(3*i), part))
			require.Empty(t, c.delivered)
		}
		c.sends("the last one", untagged(true, 0, 1, uint32(end), octets(size)[end:]))
		require.Equal(t, octets(size), buf[:size])
		c.wantDelivered("once", "qn=0 msn=1 len=40 ulp=43/00000000")
		c.sends("nothing of it is left for the next message", untagged(true, 0, 2, 0, []byte("next")))
	}
}

func TestHolesAreBounded(t *testing.T) {
	c := converse(t, 0)
	c.post(0, make([]byte, 1000))
	for i := range uint32(maxRuns) {
		c.sends("every second octet", untagged(false, 0, 1, 2*i+1, []byte("x")))
	}
	c.wantFault("one more", transport.DDPLocalCatastrophic, untagged(false, 0, 1, 999, []byte("x")))
}

// The largest permitted number of holes can all be filled.
func TestDDP_43_47_AllHolesAreFilled(t *testing.T) {
	for name, filler := range map[string]struct {
		mo uint32
		n  int
	}{
		"the beginning":         {0, 1},
		"between two":           {5, 5},
		"behind one":            {5, 2},
		"in front of another":   {8, 2},
		"behind the last":       {8*maxRuns - 3, 3},
		"nothing, in any place": {999, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := converse(t, 0)
			c.post(0, make([]byte, 1000))
			for i := range uint32(maxRuns) {
				c.sends("a part", untagged(false, 0, 1, 8*i+2, octets(3)))
			}
			c.sends("a filler", untagged(false, 0, 1, filler.mo, octets(filler.n)))
		})
	}
}

// Messages that come together are delivered together, except one that has begun before.
func TestDDP_47_WholeMessageInAMessageThatHasBegun(t *testing.T) {
	c, _, _ := conversesInBatches(t, 3)
	require.NoError(t, c.together(untagged(false, 0, 1, 4, []byte("end"))))
	_ = c.isFault("the beginning is declared to be all of it", transport.DDPOffset, c.together(whole(1, "abc"), whole(2, "d")))
	require.Empty(t, strings.Join(c.delivered, ""))
}

// Segments that come before their turn are placed at once, and judged in their turn.
func TestDDP_47_HoleInAMessageThatCameBeforeItsTurn(t *testing.T) {
	c := converse(t, 8)
	c.post(0, make([]byte, 8))
	require.NoError(t, c.s.Segment(1, untagged(true, 0, 1, 5, []byte("fgh"))))
	_ = c.isFault("a hole of an octet", transport.DDPOffset, c.s.Segment(0, untagged(false, 0, 1, 0, []byte("abcd"))))
	require.Empty(t, c.delivered)
}
