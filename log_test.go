package iwarp_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// A brokenBuffer panics with a value of the program's own type.
type brokenBuffer struct{ stag.Buffer }

func (brokenBuffer) Size() int64 { return 8 }

func (brokenBuffer) WriteAt([]byte, int64) (int, error) { panic(struct{ code int }{7}) }

// TestLogOfJSONHasTexts: addresses, kinds and values appear as in a text log, whatever their types are.
func TestLogOfJSONHasTexts(t *testing.T) {
	var log bytes.Buffer
	client, server := connect(t, pairConfig{network: "tcp", serverR: &iwarp.Config{Logger: slog.New(slog.NewJSONHandler(&log, nil))}})
	mr, err := server.pd.RegisterBuffer(brokenBuffer{}, stag.LocalWrite|stag.RemoteWrite, nil)
	require.NoError(t, err)
	_, source := client.register(8, 0, nil)
	require.NoError(t, client.qp.PostSend(iwarp.SendWR{Op: iwarp.OpRDMAWrite, Local: []iwarp.SGE{source.Slice(0, 8)}, Remote: mr.Advertise(0, 8)}))
	peer := server.qp.RemoteAddr().String()
	event := server.wantEvent(iwarp.EventTerminated) // raised after the log record
	var ended, panicked struct{ Msg, Peer, How, Value string }
	lines := json.NewDecoder(&log)
	require.NoError(t, lines.Decode(&ended))
	require.NoError(t, lines.Decode(&panicked))
	require.Equal(t, "queue pair ended", ended.Msg)
	require.Equal(t, []string{peer, event.Kind.String()}, []string{ended.Peer, ended.How})
	require.Equal(t, "{code:7}", panicked.Value)
}
