package iwarp_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// TestTraceOfRFC7306IsDecodedByWireshark: Wireshark knows every field of atomic operations.
func TestTraceOfRFC7306IsDecodedByWireshark(t *testing.T) {
	tshark := needTool(t, "tshark")
	var trace bytes.Buffer
	client, server := connect(t, pairConfig{client: iwarp.QPConfig{Trace: &trace}})
	mem, mr := server.register(64, stag.LocalWrite|stag.RemoteWrite|stag.RemoteAtomic, nil)
	*word(mem, 8) = 0x0102030405060708
	require.NoError(t, server.qp.PostRecv(iwarp.RecvWR{}, iwarp.RecvWR{}))
	require.NoError(t, client.qp.PostSend(
		iwarp.SendWR{Op: iwarp.OpRDMAWriteImm, Inline: []byte("data"), Remote: mr.Advertise(32, 8), Imm: [8]byte{0xaa, 1, 2, 3, 4, 5, 6, 0xbb}},
		iwarp.SendWR{Op: iwarp.OpImmediate, Flags: iwarp.Solicited},
		iwarp.SendWR{Op: iwarp.OpFetchAdd, Remote: mr.Advertise(8, 8), Add: 0x1112131415161718, AddMask: 0x2122232425262728},
		iwarp.SendWR{Op: iwarp.OpCompareSwap, Remote: mr.Advertise(8, 8), Compare: 0x3132333435363738, CompareMask: 0x4142434445464748, Swap: 0x5152535455565758, SwapMask: 0x6162636465666768},
	))
	succeed(t, testContext(t), client.qp.SendCQ(), 4)
	require.NoError(t, client.qp.Close())
	text := decode(t, tshark, trace.Bytes())
	for _, want := range []string{
		"OpCode: Unknown (0x8)", "OpCode: Unknown (0x9)", // it has no name for Immediate Data
		"OpCode: Atomic Request (0xa)", "OpCode: FetchAdd (0)", "Request Identifier: 1\n", "Remote Tagged Offset: 8\n",
		"Add Data: 1230066625199609624\n", "Add Mask: 0x2122232425262728\n", "Compare Data: 0\n", "Compare Mask: 0xffffffffffffffff\n",
		"OpCode: CmpSwap (2)", "Swap Data: 5859837686836516696\n", "Swap Mask: 0x6162636465666768\n",
		"Compare Data: 3544952156018063160\n", "Compare Mask: 0x4142434445464748\n",
		"OpCode: Atomic Response (0xb)", "Original Request Identifier: 1\n", "72623859790382856\n",
	} {
		require.True(t, strings.Contains(text, want), "the trace shows %q", want)
	}
	require.Equal(t, 2, strings.Count(text, "Reserved for use by the ULP: 4b00000000"), "two Atomic Responses")
	for _, bad := range []string{"Malformed", "Bad CRC", "Reassembly error"} {
		require.False(t, strings.Contains(text, bad), "the trace shows %q", bad)
	}
}
