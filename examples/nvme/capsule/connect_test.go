package capsule

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/internal/golden"
)

const goldenHost = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-4333-8444-555555555555"

func TestHOST_4_GoldenConnect(t *testing.T) {
	items := goldenItems(t)
	data := goldenNamed(t, golden.ReadResponse)
	require.Len(t, data, 6)
	subsystems := []string{DiscoveryNQN, "testnqn", "testnqn", "nosuch", DiscoveryNQN, "nqn.lab"}
	for i, b := range data {
		d, status := ParseConnectData(b)
		require.Equal(t, Success, status)
		require.Equal(t, subsystems[i], d.SubNQN)
		require.Equal(t, uint16(AnyController), d.CNTLID)
		_, status = d.CheckHost()
		require.Equal(t, Success, status)
		again := dirty()
		d.Put(again)
		require.Equal(t, b, again[:ConnectDataSize])
		if i < 4 {
			require.Equal(t, goldenHost, d.HostNQN)
			require.Equal(t, unhex("11111111222243338444555555555555"), d.HostID[:])
		}
	}
	n := 0
	for _, item := range items {
		if item.Name != "connect-io" {
			continue
		}
		n++
		c, behind, err := ParseSQE(item.Octets)
		require.NoError(t, err)
		require.True(t, c.IsConnect())
		m := ParseConnect(&c)
		require.Equal(t, Connect{QID: 1, SQSize: 31}, m)
		d, status := ParseConnectData(behind)
		require.Equal(t, Success, status)
		want := uint16(1)
		if item.Conn == 4 {
			want = 2
		}
		require.Equal(t, want, d.CNTLID)

		made := m.SQE(c.CID, InCapsuleSGL(0, ConnectDataSize))
		again := append(made.Append(nil), dirty()[:ConnectDataSize]...)
		d.Put(again[SQESize:])
		require.Equal(t, item.Octets, again)
	}
	require.Equal(t, 3, n)

	kato := make(map[uint32]bool)
	for _, b := range goldenNamed(t, "connect-admin") {
		c, _, err := ParseSQE(b)
		require.NoError(t, err)
		kato[ParseConnect(&c).KATO] = true
	}
	require.Equal(t, map[uint32]bool{0: true, 2000: true, 5000: true}, kato)
}

// TestHOST_4_FieldsOfConnect: each field of the command is at its own octets.
func TestHOST_4_FieldsOfConnect(t *testing.T) {
	m := Connect{RecFmt: 0x0102, QID: 0x0304, SQSize: 0x0506, CAttr: AttrNoFlowControl, KATO: 0x0708090A}
	c := m.SQE(0xBEEF, NullSGL())
	require.Equal(t, unhex("0201 0403 0605 04 00 0a090807 000000000000000000000000"), c.Append(nil)[40:])
	require.Equal(t, m, ParseConnect(&c))
	c = Property{}.SQE(0)
	require.False(t, c.IsConnect())
	c = RW{Opcode: OpWrite, NSID: uint32(FCConnect)}.SQE(0, NullSGL())
	require.False(t, c.IsConnect())
}

func TestHOST_4_FailedConnect(t *testing.T) {
	b := goldenNamed(t, "rsp:connect-admin")
	refused, err := ParseCQE(b[3])
	require.NoError(t, err)
	_, err = ParseConnectResponse(&refused)
	require.ErrorIs(t, err, StatusError{StatusConnectParameter})
	require.EqualError(t, err,
		"nvme: connect: 0x182+DNR, invalid parameters of Connect: SUBNQN, at offset 256 of the data")
	var e *ConnectError
	require.True(t, errors.As(err, &e))
	require.Equal(t, &ConnectError{StatusConnectParameter, ParamSubNQN}, e)

	for _, c := range []struct {
		dw0  uint32
		want string
	}{
		{42, "QID, at offset 42 of the command"},
		{44, "SQSIZE, at offset 44 of the command"},
		{0x10000, "HOSTID, at offset 0 of the data"},
		{0x10010, "CNTLID, at offset 16 of the data"},
		{0x10200, "HOSTNQN, at offset 512 of the data"},
		{0, "unknown field, at offset 0 of the command"},
	} {
		_, err := ParseConnectResponse(&CQE{Status: StatusConnectParameter, DW0: c.dw0})
		require.ErrorContains(t, err, c.want)
	}
	_, err = ParseConnectResponse(&CQE{Status: StatusConnectBusy, DW0: 42})
	require.True(t, errors.As(err, &e))
	require.Equal(t, &ConnectError{Status: StatusConnectBusy}, e, "no parameter is wrong")

	id, err := ParseConnectResponse(&CQE{DW0: MaxCNTLID})
	require.NoError(t, err)
	require.Equal(t, uint16(MaxCNTLID), id)
	_, err = ParseConnectResponse(&CQE{DW0: MaxCNTLID + 1})
	require.ErrorIs(t, err, ErrMalformed)
	for _, auth := range []uint32{1 << 17, 1 << 18} {
		_, err = ParseConnectResponse(&CQE{DW0: 1 | auth})
		require.ErrorContains(t, err, "authentication")
	}
}

func TestNVME_32_ConnectParameters(t *testing.T) {
	for _, c := range []struct {
		p    ConnectParameter
		want uint32
	}{
		{ParamQID, 42},
		{ParamSQSize, 44},
		{ParamHostID, 0x10000},
		{ParamCNTLID, 0x10010},
		{ParamSubNQN, 0x10100},
		{ParamHostNQN, 0x10200},
	} {
		require.Equal(t, c.want, c.p.DW0(), c.p)
	}
	for _, n := range []int{0, 1023, 1025} {
		_, status := ParseConnectData(make([]byte, n))
		require.Equal(t, StatusInvalidSGLLength, status)
	}
	good := ConnectData{HostID: [16]byte{15: 1}, HostNQN: "host"}
	_, status := good.CheckHost()
	require.Equal(t, Success, status)

	// A wrong name comes before a wrong identifier.
	both := ConnectData{}
	p, status := both.CheckHost()
	require.Equal(t, StatusConnectParameter, status)
	require.Equal(t, ParamHostNQN, p)
	id := ConnectData{HostNQN: "host"}
	p, status = id.CheckHost()
	require.Equal(t, StatusConnectParameter, status)
	require.Equal(t, ParamHostID, p)
}

func TestNVME_36_NoFlowControl(t *testing.T) {
	c := Connect{CAttr: 0xFF}.SQE(0, NullSGL())
	require.Equal(t, uint8(0xFF), c.Append(nil)[46])
	require.Equal(t, 4, AttrNoFlowControl)
	r := CQE{SQHD: SQHDDisabled}
	require.Equal(t, []byte{0xFF, 0xFF}, r.Append(nil)[8:10])
}

func TestNVME_37_Names(t *testing.T) {
	parse := func(field string) string {
		b := make([]byte, ConnectDataSize)
		copy(b[512:768], field)
		d, status := ParseConnectData(b)
		require.Equal(t, Success, status)
		p, status := d.CheckHost()
		if err := CheckNQN(d.HostNQN); err != nil {
			require.Equal(t, ParamHostNQN, p)
			require.Equal(t, StatusConnectParameter, status)
			return err.Error()
		}
		require.Equal(t, ParamHostID, p)
		return ""
	}
	require.Empty(t, parse("n"))
	require.Empty(t, parse(strings.Repeat("n", 223)))
	require.Empty(t, parse("nqn.2014-08.org.example:ünïcode"))
	require.Empty(t, parse("host\x00\xff\x01"), "what is behind the NUL is nothing")
	require.Contains(t, parse(""), "empty")
	require.Contains(t, parse(strings.Repeat("n", 224)), "longer than 223")
	require.Contains(t, parse(strings.Repeat("n", 256)), "longer than 223", "without NUL")
	require.Contains(t, parse("a\xffb"), `"a\xffb" is not UTF-8`)
	require.Contains(t, parse("a\nb"), `"a\nb" has a control character`)
	require.Contains(t, parse("a\u0085b"), "control character")
	require.NotContains(t, parse(strings.Repeat("\n", 256)), "\n", "the error quotes the name")
	require.ErrorIs(t, CheckNQN(""), ErrMalformed)
	require.NoError(t, CheckNQN(DiscoveryNQN))
}

func TestNVME_32_TypesOfFabricsCommands(t *testing.T) {
	for fc, name := range map[FCType]string{
		0: "Property Set", 1: "Connect", 4: "Property Get", 5: "Authentication Send", 6: "Authentication Receive",
		8: "Disconnect", 0x7F: "fctype 0x7f",
	} {
		require.Equal(t, name, fc.String())
		c := SQE{Opcode: OpFabrics, NSID: 0xABCDEF00 | uint32(fc)}
		require.Equal(t, fc, c.FCType())
		require.Equal(t, Direction(fc&3), c.Direction())
	}
	c := Disconnect{RecFmt: 3}.SQE(9)
	require.Equal(t, FCDisconnect, c.FCType())
	require.Equal(t, Disconnect{3}, ParseDisconnect(&c))
}
