package dump_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/dump"
)

// FuzzCapture: whatever a capture contains, each record is one line of text and one JSON object.
func FuzzCapture(f *testing.F) {
	for _, b := range [][]byte{markersTape(), badCRCTape(), gapTape(), hostileTape(), privateTape(), extensionsTape(), sctpTape(false), sctpTape(true)} {
		f.Add(b, true)
	}
	for _, name := range []string{"rping", "mpa_markers_reject", "terminate_ddp_bounds"} {
		b, err := os.ReadFile(filepath.Join("..", "pcap", "testdata", name+".pcap"))
		require.NoError(f, err)
		f.Add(b, false)
	}
	f.Fuzz(func(t *testing.T, b []byte, nvme bool) {
		cfg := dump.Config{Protocols: map[uint16]string{7471: "rpcrdma"}}
		if nvme {
			cfg.Protocols[7471] = "nvme"
		}
		var p dump.Printer
		err := dump.Capture(bytes.NewReader(b), cfg, func(records []dump.Record) error {
			for i := range records {
				line := p.Line(&records[i])
				require.NotContains(t, line, "\n")
				require.False(t, strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }), "%q", line)
				object, err := json.Marshal(&records[i])
				require.NoError(t, err)
				require.True(t, json.Valid(object))
			}
			return nil
		})
		if err != nil {
			require.Contains(t, err.Error(), "octet")
		}
	})
}
