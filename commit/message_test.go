package commit

import (
	"encoding/hex"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
	"github.com/goiwarp/iwarp/transport"
)

func TestCMT_1_2_3_5_9_11_17_RequestOnTheWire(t *testing.T) {
	c := converse(t, nil)
	c.posts(ask(7, Region{STag: 0x11223344, TO: 0x1000, Len: 0x20}))
	c.wantSegment("control 4c: version 1, opcode 12; no STag to invalidate; QN 1, MSN 1; MO; then ID, STag, length, TO",
		unhex("414c 00000000 00000001 00000001 00000000"+"00000007 11223344 00000020 0000000000001000"))
	c.posts(ask(8, Region{1, 2, 3}, Region{4, 5, 6}).then(0x55, 0x1008, 0x0102030405060708))
	c.wantSegment("more regions, and what follows them",
		unhex("414c 00000000 00000001 00000002 00000000"+"00000008 00000001 00000003 0000000000000002 00000004 00000006 0000000000000005"+
			"00000055 0000000000001008 0102030405060708"))
}

func TestCMT_1_2_4_6_7_ResponseOnTheWire(t *testing.T) {
	c := converse(t, nil)
	r, _ := c.region(nil)
	c.sends("a Commit", requestOf(1, ask(0xabcd0001, part(r, 0, 8))))
	c.run()
	c.wantSegment("control 4d: version 1, opcode 13; QN 3, MSN 1; then the ID again, and the status",
		unhex("414d 00000000 00000003 00000001 00000000"+"abcd0001 00000000"))
}

func TestCMT_9_10_LengthOfARequest(t *testing.T) {
	for n := range 120 {
		var r Request
		fault := r.Parse(make([]byte, n))
		regions, follow := (n-4)/16, false
		ok := n >= 20 && (n-4)%16 == 0
		if n >= 40 && (n-24)%16 == 0 {
			regions, follow, ok = (n-24)/16, true, true
		}
		if !ok {
			require.NotNil(t, fault, "%d octets are no request", n)
			require.Equal(t, transport.RDMAPStreamCatastrophic, fault.Code)
			continue
		}
		require.Nil(t, fault, "%d octets", n)
		require.Len(t, r.Regions, regions)
		require.Equal(t, follow, r.HasFollowOn)
	}
}

func FuzzRequest(f *testing.F) {
	whole := ask(1, Region{1, 2, 3}, Region{4, 5, 6}).then(7, 8, 9)
	f.Add(whole.Append(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Request
		if r.Parse(b) == nil {
			require.Equal(t, hex.EncodeToString(b), hex.EncodeToString(r.Append(nil)), "what is read can be written")
		}
	})
}

func TestCMT_31_32_Status(t *testing.T) {
	require.Zero(t, MakeStatus(3, OK), "success is 0, whichever region")
	for _, region := range []int{-1, NoRegion, NoRegion + 3} {
		require.Equal(t, NoRegion, MakeStatus(region, Failed).Region(), "%d is the index of no region", region)
	}
	st := MakeStatus(2, DataLost)
	require.EqualValues(t, 0x00020008, st)
	require.Equal(t, 2, st.Region())
	require.ErrorIs(t, st.Err(), ErrDataLost)
	require.NotErrorIs(t, st.Err(), ErrFailed)
	require.NoError(t, Status(0).Err())
	for _, unknown := range []Status{0x77, 0x00010000, 0xffffffff, 0x8005} {
		require.Error(t, unknown.Err(), "%#x is no success", uint32(unknown))
		require.NotEmpty(t, unknown.String())
	}
	require.Equal(t, Unspecified, Status(0x00010000).Code())
	require.Equal(t, "commit: data lost (region 2)", st.Err().Error())
	require.Equal(t, "commit: temporary failure", ErrTransient.Error())
}

func TestCMT_58_OfferNamesTheDialect(t *testing.T) {
	o := Offer{Regions: 64, Octets: 1 << 40}
	b := append(o.Append(nil), "rest"...)
	require.Equal(t, "636f6d6d69742d30300000400000010000000000", hex.EncodeToString(b[:OfferLen]))
	got, rest, ok := CutOffer(b)
	require.True(t, ok)
	require.Equal(t, o, got)
	require.Equal(t, "rest", string(rest))
	for _, none := range []string{"", "commit-00", "commit-01\x00\x00\x40\x00\x00\x01\x00\x00\x00\x00\x00", "commit-00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00"} {
		_, rest, ok := CutOffer([]byte(none))
		require.False(t, ok, "%q is no offer of this dialect", none)
		require.Equal(t, none, string(rest), "it is the application's")
	}
}

func TestRequestOfStagRegions(t *testing.T) {
	r := ask(1, Region{STag: stag.STag(1), Len: 1 << 31}, Region{Len: 1 << 31}, Region{Len: 1 << 31})
	require.EqualValues(t, int64(3<<31), r.Total(), "the sum of the lengths does not overflow")
}

// A longBuffer is a stag.Buffer of which no octet is looked at.
type longBuffer struct {
	stag.Buffer
	size int64
}

func (b *longBuffer) Size() int64 { return b.size }

// TestCommitOfMoreThanAnIntCounts is done on systems with 32 bits, too (GOARCH=386).
func TestCommitOfMoreThanAnIntCounts(t *testing.T) {
	for _, n := range []uint32{math.MaxInt32, math.MaxInt32 + 1, math.MaxUint32} {
		c := converse(t, nil)
		r, err := c.table.RegisterBuffer(&longBuffer{size: math.MaxUint32}, stag.Options{Access: stag.LocalWrite | stag.RemoteWrite, Scope: alice, Flusher: &c.media})
		require.NoError(t, err)
		c.sends("a Commit", requestOf(1, ask(1, Region{STag: r.STag(), Len: n})))
		c.wantAnswer("is done", 1, 1, 0)
	}
}
