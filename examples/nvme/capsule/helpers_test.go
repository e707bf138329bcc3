package capsule

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/internal/golden"
	"github.com/goiwarp/iwarp/internal/octettest"
)

var unhex = octettest.Hex

// privateAt is where the NVMe part of the private data begins in an MPA frame.
const privateAt = 24

func goldenItems(t testing.TB) []golden.Item {
	t.Helper()
	items, err := golden.Load()
	require.NoError(t, err)
	require.Equal(t, 378, len(items)) // not Len, which prints them
	return items
}

// goldenNamed returns the octets of all items of a name.
func goldenNamed(t testing.TB, name string) [][]byte {
	t.Helper()
	var all [][]byte
	for _, item := range goldenItems(t) {
		if item.Name == name {
			all = append(all, item.Octets)
		}
	}
	require.NotEmpty(t, all, name)
	return all
}

// goldenCommand parses the first command of a name, without what follows it.
func goldenCommand(t testing.TB, name string) SQE {
	t.Helper()
	c, _, err := ParseSQE(goldenNamed(t, name)[0])
	require.NoError(t, err)
	return c
}

// dirty returns a page without a zero octet, such as a used page may be.
func dirty() []byte { return bytes.Repeat([]byte{0xA5}, PageSize) }

// rebuild makes a command again from the fields of its type.
func rebuild(c *SQE, io bool) (SQE, bool) {
	switch {
	case c.Opcode == OpFabrics:
		return rebuildFabrics(c)
	case io:
		return rebuildIO(c)
	}
	switch c.Opcode {
	case OpGetLogPage:
		return ParseGetLogPage(c).SQE(c.CID, c.SGL), true
	case OpIdentify:
		return ParseIdentify(c).SQE(c.CID, c.SGL), true
	case OpAbort:
		return ParseAbort(c).SQE(c.CID), true
	case OpSetFeatures:
		return ParseSetFeatures(c).SQE(c.CID, c.SGL), true
	case OpGetFeatures:
		return ParseGetFeatures(c).SQE(c.CID, c.SGL), true
	case OpAsyncEvent:
		return AsyncEventSQE(c.CID), true
	case OpKeepAlive:
		return KeepAliveSQE(c.CID), true
	default:
		return SQE{}, false
	}
}

func rebuildFabrics(c *SQE) (SQE, bool) {
	switch c.FCType() {
	case FCConnect:
		return ParseConnect(c).SQE(c.CID, c.SGL), true
	case FCPropertyGet, FCPropertySet:
		return ParseProperty(c).SQE(c.CID), true
	case FCDisconnect:
		return ParseDisconnect(c).SQE(c.CID), true
	default:
		return SQE{}, false
	}
}

func rebuildIO(c *SQE) (SQE, bool) {
	switch c.Opcode {
	case OpRead, OpWrite, OpCompare, OpWriteZeroes:
		return ParseRW(c).SQE(c.CID, c.SGL), true
	case OpDSM:
		return ParseDSM(c).SQE(c.CID, c.SGL), true
	case OpFlush:
		return FlushSQE(c.CID, c.NSID), true
	default:
		return SQE{}, false
	}
}
