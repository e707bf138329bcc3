package capsule

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/internal/golden"
)

func TestNVME_7_PrivateDataOfRequests(t *testing.T) {
	for n := range PrivateSize {
		_, status := ParseRequest(make([]byte, n))
		require.Equal(t, RejectLength, status, n)
	}
	good := Request{QID: 2, HRQSize: 128, HSQSize: 127, CNTLID: 5}
	b := good.Append(nil)
	got, status := ParseRequest(b)
	require.Zero(t, status)
	require.Equal(t, good, got)
	got, status = ParseRequest(append(b, 1, 2, 3))
	require.Zero(t, status)
	require.Equal(t, good, got)
	b[1] = 1
	_, status = ParseRequest(b)
	require.Equal(t, RejectRecFmt, status)

	for _, c := range []struct {
		r    Request
		want RejectStatus
	}{
		{Request{QID: 0, HRQSize: 32, HSQSize: 31}, 0},
		{Request{QID: 0, HRQSize: 31, HSQSize: 31}, 0},
		{Request{QID: 0, HRQSize: 33, HSQSize: 32}, RejectHSQSize},
		{Request{QID: 0, HRQSize: 33, HSQSize: 0}, RejectHSQSize},
		{Request{QID: 0, HRQSize: 30, HSQSize: 31}, RejectHRQSize},
		{Request{QID: 4, HRQSize: 128, HSQSize: 127}, 0},
		{Request{QID: 4, HRQSize: 129, HSQSize: 128}, RejectHSQSize},
		{Request{QID: 5, HRQSize: 128, HSQSize: 127}, RejectQID},
		{Request{QID: 5}, RejectQID},
	} {
		require.Equal(t, c.want, c.r.Check(4, 31, 127), "%+v", c.r)
	}
}

func TestNVME_1_GoldenPrivateData(t *testing.T) {
	for _, item := range goldenItems(t) {
		switch item.Name {
		case golden.MPARequest:
			r, status := ParseRequest(item.Octets[privateAt:])
			require.Zero(t, status)
			want := Request{QID: item.Queue, HRQSize: 32, HSQSize: 31}
			if item.Queue > 0 && item.Conn < 6 { // Linux 6.12
				want.CNTLID = map[int]uint16{2: 1, 4: 2}[item.Conn]
			}
			require.Equal(t, want, r)
			require.Equal(t, item.Octets[privateAt:], r.Append(nil))
		case golden.MPAReply:
			a, err := ParseAccept(item.Octets[privateAt:])
			require.NoError(t, err)
			require.Equal(t, Accept{CRQSize: 32}, a)
			require.Equal(t, item.Octets[privateAt:], a.Append(nil))
		}
	}
}

func TestHOST_2_PrivateDataOfAccepts(t *testing.T) {
	for n := range PrivateSize {
		_, err := ParseAccept(make([]byte, n))
		require.ErrorIs(t, err, ErrMalformed)
	}
	b := Accept{CRQSize: 128}.Append(nil)
	a, err := ParseAccept(b)
	require.NoError(t, err)
	require.Equal(t, uint16(128), a.CRQSize)
	b[0] = 1
	_, err = ParseAccept(b)
	require.ErrorContains(t, err, "RECFMT 1")
	_, err = ParseAccept(Accept{}.Append(nil))
	require.ErrorContains(t, err, "CRQSIZE 0")
}

func TestHOST_3_Rejects(t *testing.T) {
	text := map[RejectStatus]string{
		1: "length", 2: "RECFMT", 3: "QID", 4: "HSQSIZE", 5: "HRQSIZE", 6: "resources", 7: "IRD", 8: "ORD", 9: "CNTLID",
	}
	for s := RejectStatus(1); s <= 9; s++ {
		b := s.Append(nil)
		require.Equal(t, []byte{0, 0, byte(s), 0}, b)
		err := ParseReject(b)
		require.Equal(t, RejectError{s}, err)
		require.ErrorContains(t, err, text[s])
	}
	require.Equal(t, RejectCNTLID, RejectStatus(9))
	require.EqualError(t, ParseReject([]byte{0, 0, 10, 1}), "nvme: the target rejected the connection: status 266")
	for _, b := range [][]byte{nil, {0}, {0, 0, 3}, {1, 0, 3, 0}, {0, 0, 0, 0}} {
		require.Equal(t, RejectError{}, ParseReject(b))
		require.EqualError(t, ParseReject(b), "nvme: the target rejected the connection without a reason, as one does that wants authentication")
	}
}
