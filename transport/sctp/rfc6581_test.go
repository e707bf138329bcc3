package sctp

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

// TestSCTP_62_DepthsFollowTheRulesOfMPA: each rule of RFC 6581 section 9.1, MPA2-9 to 19, at the
// end that it binds.
func TestSCTP_62_DepthsFollowTheRulesOfMPA(t *testing.T) {
	type depths [2]int
	for _, c := range []struct {
		why        string
		ird, ord   int
		request    string
		answer     string
		want, peer depths
		rtr        transport.RTR
	}{
		{"the ORD is at most the initiator's IRD (10)", 9, 8, "0003 0004", "0009 0003", depths{9, 3}, depths{3, 4}, 0},
		{"less is left as it is (10)", 9, 2, "0003 0004", "0009 0002", depths{9, 2}, depths{3, 4}, 0},
		{"an IRD below the initiator's ORD is told as it is", 2, 2, "0003 0004", "0002 0002", depths{2, 2}, depths{3, 4}, 0},
		{"a Read as RTR raises the IRD (11)", 0, 2, "8003 4000", "8001 4002", depths{1, 2}, depths{3, 0}, transport.RTRRead},
		{"a Write does not (11)", 0, 2, "8003 8000", "8000 8002", depths{0, 2}, depths{3, 0}, transport.RTRWrite},
		{"ORD 0x3FFF leaves our IRD (16)", 9, 2, "0003 3fff", "3fff 0002", depths{9, 2}, depths{3, -1}, 0},
		{"IRD 0x3FFF leaves our ORD (17)", 9, 40, "3fff 0004", "0009 3fff", depths{9, 40}, depths{-1, 4}, 0},
	} {
		f := newFake()
		f.says(17, "0000 0005"+c.request)
		r, err := ReadRequest(context.Background(), f)
		require.NoError(t, err)
		require.Equal(t, c.peer, depths{r.PeerIRD(), r.PeerORD()}, "the ULP learns them before it answers (9): %s", c.why)
		_, terms, err := r.Accept(Options{}, c.ird, c.ord, nil)
		require.NoError(t, err)
		f.wantSent(t, "17 0000 0006"+c.answer)
		require.Equal(t, c.want, depths{terms.IRD, terms.ORD}, c.why)
		require.Equal(t, c.peer, depths{terms.PeerIRD, terms.PeerORD}, "and after it (9): %s", c.why)
		require.Equal(t, c.rtr, terms.RTR, c.why)
	}

	f := newFake()
	f.says(17, "0000 0005 0003 0004")
	r, err := ReadRequest(context.Background(), f)
	require.NoError(t, err)
	require.NoError(t, r.Reject(-1, 7, nil))
	f.wantSent(t, "17 0000 0007 0004 0007") // a refusal names the ORD that was needed (12)

	for _, c := range []struct {
		why        string
		o          Options
		request    string
		answer     string
		want, peer depths
		fault      transport.Code
	}{
		{"the ORD is at most the responder's IRD (13)", Options{}, "0010 0008", "0005 0010", depths{16, 5}, depths{5, 16}, 0},
		{"a smaller one stays (13)", Options{}, "0010 0008", "0009 0010", depths{16, 8}, depths{9, 16}, 0},
		{"an ORD above our IRD ends it: 2/0/06 (14)", Options{}, "0010 0008", "0009 0011", depths{16, 8}, depths{9, 17}, transport.MPAInsufficientIRD},
		{"IRD 0x3FFF leaves our ORD (18)", Options{}, "0010 0008", "3fff 0010", depths{16, 8}, depths{-1, 16}, 0},
		{"ORD 0x3FFF leaves our IRD (19)", Options{}, "0010 0008", "0009 3fff", depths{16, 8}, depths{9, -1}, 0},
		{"both 0x3FFF leave ours (18, 19)", Options{}, "0010 0008", "3fff 3fff", depths{16, 8}, depths{-1, -1}, 0},
	} {
		f := newFake()
		f.says(17, "0000 0006"+c.answer)
		_, terms, err := Connect(context.Background(), f, c.o, 16, 8, nil)
		require.NoError(t, err)
		f.wantSent(t, "17 0000 0005"+c.request)
		require.Equal(t, c.want, depths{terms.IRD, terms.ORD}, c.why)
		require.Equal(t, c.peer, depths{terms.PeerIRD, terms.PeerORD}, "the ULP learns them (9, 15): %s", c.why)
		if c.fault == 0 {
			require.Nil(t, terms.Fault, c.why)
			continue
		}
		require.NotNil(t, terms.Fault, c.why)
		require.Equal(t, c.fault, terms.Fault.Code, c.why)
	}

	f = newFake()
	f.says(17, "0000 0007 0002 0007")
	_, _, err = Connect(context.Background(), f, Options{}, 16, 8, nil)
	var rejected *RejectError
	require.ErrorAs(t, err, &rejected)
	require.Equal(t, depths{2, 7}, depths{rejected.IRD, rejected.ORD}, "those of a refusal, too (15)")
}

// TestMPA2_34_DepthsThatAreLeftToTheULPs: there is nothing of RFC 6581 to ask for, and its Initiate is not used (section
// 10 there).
func TestMPA2_34_DepthsThatAreLeftToTheULPs(t *testing.T) {
	o := Options{FixedDepths: true}
	require.Equal(t, MaxPrivateData, o.MaxPrivate())
	f := newFake()
	f.says(17, "0000 0002 6869")
	_, terms, err := Connect(context.Background(), f, o, 16, 8, []byte("A"))
	require.NoError(t, err)
	f.wantSent(t, "17 0000 0001 41")
	require.Equal(t, &Terms{IRD: 16, ORD: 8, PeerIRD: -1, PeerORD: -1, PeerPrivateData: []byte("hi")}, terms)
}
