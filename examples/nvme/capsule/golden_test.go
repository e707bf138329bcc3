package capsule

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/internal/golden"
)

// TestNVME_13_GoldenCommands: each command gives the same octets again, from all fields and from only the fields of its
// type.
func TestNVME_13_GoldenCommands(t *testing.T) {
	n := 0
	for _, item := range goldenItems(t) {
		if !item.IsCommand() {
			continue
		}
		n++
		c, behind, err := ParseSQE(item.Octets)
		require.NoError(t, err, item.Name)
		require.Equal(t, item.Octets, append(c.Append(nil), behind...), item.Name)

		d, status := c.Data(behind)
		require.Equal(t, Success, status, item.Name)
		switch {
		case len(behind) > 0:
			require.Equal(t, Data{Kind: DataInCapsule, Length: uint32(len(behind)), Octets: behind}, d, item.Name)
		case c.SGL == NullSGL():
			require.Equal(t, Data{}, d, item.Name)
		default:
			require.Equal(t, DataKeyed, d.Kind, item.Name)
			require.True(t, d.Invalidate, item.Name)
			require.Equal(t, c.SGL, KeyedSGL(d.STag, d.TO, d.Length, d.Invalidate), item.Name)
			require.Equal(t, uint64(1), d.TO>>63, item.Name)
		}
		again, known := rebuild(&c, item.Queue > 0)
		require.Equal(t, item.Name != "admin-55", known, item.Name)
		if known {
			require.Equal(t, c, again, item.Name)
		}
	}
	require.Equal(t, 157, n)
}

// A kernelTarget knows what a target needs in order to answer the commands of the golden file. It sees all connections
// of the file, one after the other.
type kernelTarget struct {
	cc   CC
	cids map[string]uint16 // of the last command by name
	set  uint32            // the last value of FeatureAsyncEvents
}

// command takes in a command.
func (k *kernelTarget) command(name string, c *SQE) {
	k.cids[name] = c.CID
	switch {
	case strings.HasPrefix(name, "property-set-cc"):
		k.cc = ParseCC(uint32(ParseProperty(c).Value))
	case name == "set-features-0b":
		k.set = ParseSetFeatures(c).Value
	}
}

// result returns DW0 and DW1 of a response.
func (k *kernelTarget) result(name string, conn int) uint64 {
	switch name {
	case "connect-admin", "connect-io":
		return uint64(k.connect(conn))
	case "property-get-cap":
		return CAP{MQES: 127, TO: 15, CSS: CSSNVM | CSSCSI}.Value()
	case "property-get-cc":
		return uint64(k.cc.Value())
	case "property-get-csts":
		if k.cc.SHN == SHNNormal {
			return uint64(CSTS{SHST: SHSTComplete}.Value())
		}
		return uint64(CSTS{RDY: k.cc.EN}.Value())
	case "property-get-vs":
		return uint64(Version13)
	case "set-features-07", "get-features-07":
		return uint64(Queues(128).Value())
	case "get-features-06":
		return VWCEnabled
	case "set-features-0b", "get-features-0b":
		return uint64(k.set)
	case "get-features-0f":
		return 2000
	case "async-event":
		return uint64(EventNamespaceChanged.DW0())
	}
	return 0
}

// connect returns DW0 of the response to Connect. The second controller, after the reset, has connections 3 and 4. The
// subsystem of connection 5 does not exist.
func (k *kernelTarget) connect(conn int) uint32 {
	switch conn {
	case 3, 4:
		return 2
	case 5:
		return ParamSubNQN.DW0()
	}
	return 1
}

// status returns the status of a response. The kernel's statuses have More, except those of Connect.
func (k *kernelTarget) status(name string, conn int) Status {
	switch name {
	case "admin-55", "compare-slba0-n1-incapsule":
		return StatusInvalidOpcode | statusMore
	case "property-get-intms", "identify-ns-csi":
		return StatusInvalidField | statusMore
	case "read-slbaf423f-n1":
		return StatusInternalError.WithDNR() | statusMore
	case "connect-admin":
		if conn == 5 {
			return StatusConnectParameter
		}
	}
	return Success
}

// TestNVME_14_GoldenResponses: the model makes the responses. SQHD is copied, since not all responses are in the file.
func TestNVME_14_GoldenResponses(t *testing.T) {
	k := &kernelTarget{cids: make(map[string]uint16)}
	n := 0
	for _, item := range goldenItems(t) {
		if item.IsCommand() {
			c, _, err := ParseSQE(item.Octets)
			require.NoError(t, err)
			k.command(item.Name, &c)
		}
		if !item.IsResponse() {
			continue
		}
		n++
		name := strings.TrimPrefix(item.Name, golden.Response)
		got, err := ParseCQE(item.Octets)
		require.NoError(t, err)
		want := CQE{
			SQHD: got.SQHD, SQID: item.Queue, CID: k.cids[name], Status: k.status(name, item.Conn),
		}
		want.SetValue(k.result(name, item.Conn))
		require.Equal(t, want, got, "%s on connection %d", name, item.Conn)
		require.Equal(t, item.Octets, want.Append(nil), "%s on connection %d", name, item.Conn)
		require.Equal(t, k.result(name, item.Conn), got.Value(), name)
	}
	require.Equal(t, 153, n)
}
