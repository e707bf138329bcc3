package dump

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rdmap"
)

// TestEachOpcodeIsDecoded: every opcode of package rdmap is shown with its name and the fields of its header.
func TestEachOpcodeIsDecoded(t *testing.T) {
	for op := range rdmap.Opcode(16) {
		if strings.HasPrefix(op.String(), "opcode ") {
			continue
		}
		b, ok := bindings[op]
		require.True(t, ok, "%v needs an entry in bindings", op)
		if !b.tagged && !op.IsSend() {
			require.NotNil(t, headers[op], "%v needs an entry in headers, with a function that decodes it", op)
		}
	}
}
