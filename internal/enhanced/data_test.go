package enhanced

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

// golden has a value for each vector of the frames R5 to R8 and for some edge cases.
var golden = []struct {
	name string
	data Data
	wire []byte
}{
	{"R5", Data{PeerToPeer: true, RTR: transport.RTRWrite | transport.RTRRead, IRD: 16, ORD: 8}, []byte{0x80, 0x10, 0xc0, 0x08}},
	{"R6", Data{PeerToPeer: true, RTR: transport.RTRWrite, IRD: 8, ORD: 16}, []byte{0x80, 0x08, 0x80, 0x10}},
	{"R7", Data{IRD: Unset, ORD: Unset}, []byte{0x3f, 0xff, 0x3f, 0xff}},
	{"R8", Data{PeerToPeer: true, RTR: transport.RTRSend, IRD: 1, ORD: 64}, []byte{0xc0, 0x01, 0x00, 0x40}},
	{"read only", Data{PeerToPeer: true, RTR: transport.RTRRead, ORD: 1}, []byte{0x80, 0, 0x40, 0x01}},
	{"peer-to-peer without RTR", Data{PeerToPeer: true, IRD: 0x1234, ORD: 0x2345}, []byte{0x92, 0x34, 0x23, 0x45}},
	{"nothing", Data{}, []byte{0, 0, 0, 0}},
}

func TestMPA2_6_DepthsAre14BitsBigEndian(t *testing.T) {
	for _, g := range golden {
		require.Equal(t, g.wire, g.data.Append(nil), "what %s looks like on the wire", g.name)
		got, err := Parse(append(g.wire, 0xff))
		require.NoError(t, err)
		require.Equal(t, g.data, got, "what %s means", g.name)
	}
	over := Data{IRD: 0xffff, ORD: 0xffff}
	require.Equal(t, []byte{0x3f, 0xff, 0x3f, 0xff}, over.Append(nil), "depths never spill into the flags")
}

func TestMPA2_28_ClientServerNamesNoRTR(t *testing.T) {
	d := Data{RTR: transport.RTRSend | transport.RTRWrite | transport.RTRRead, IRD: 1, ORD: 2}
	require.Equal(t, []byte{0, 1, 0, 2}, d.Append(nil), "B, C and D are 0 if A is 0")
	reply, agreed := Respond(Data{IRD: 1, ORD: 1}, Limits{IRD: 4, ORD: 4, RTR: transport.RTRSend | transport.RTRWrite | transport.RTRRead})
	require.Equal(t, transport.RTR(0), reply.RTR, "the answer to a client names no RTR")
	require.Equal(t, transport.RTR(0), agreed.RTR, "the server expects no RTR")
}

func TestMPA2_29_ClientServerIgnoresRTR(t *testing.T) {
	d, err := Parse([]byte{0x40, 1, 0xc0, 2})
	require.NoError(t, err)
	require.Equal(t, Data{IRD: 1, ORD: 2}, d, "B, C and D mean nothing if A is 0")
	agreed, fault := Conclude(Limits{IRD: 4, ORD: 4, RTR: transport.RTRWrite}, d)
	require.Nil(t, fault, "an accepted client-server Reply needs no common RTR")
	require.Equal(t, transport.RTR(0), agreed.RTR, "no RTR is sent")
}

func TestParseWantsFourOctets(t *testing.T) {
	for n := range Size {
		_, err := Parse(make([]byte, n))
		require.Error(t, err, "enhanced data of %d octets", n)
	}
}

func FuzzParse(f *testing.F) {
	for _, g := range golden {
		f.Add(g.wire)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Parse(b)
		if err != nil {
			return
		}
		again, err := Parse(d.Append(nil))
		require.NoError(t, err)
		require.Equal(t, d, again, "what is appended parses to the same")
	})
}

func TestCodecDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, Size)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		d, _ := Parse(golden[0].wire)
		buf = d.Append(buf[:0])
	}), "allocations of a codec round trip")
}
