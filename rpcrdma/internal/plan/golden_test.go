package plan

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rpcrdma/internal/captures"
	"github.com/goiwarp/iwarp/rpcrdma/internal/wire"
)

// TestRPR_7_8_GoldenReplies: calls of Linux and the replies of an NFS server result in the octets that Linux accepted in
// the captures.
func TestRPR_7_8_GoldenReplies(t *testing.T) {
	all := captures.Headers(t)
	for _, c := range []struct {
		call, reply string
		data        int // octets that went by the Write chunk
		chunk       int // octets that went by the Reply chunk
		threshold   int
	}{
		{call: "READ call of 12288 octets", reply: "READ reply by the Write chunk: 10001 octets", data: 10001, threshold: 4096},
		{call: "READ call of 7003 octets: a Write chunk with a pad segment", reply: "READ reply: the pad segment was not written", data: 7003, threshold: 4096},
		{call: "SYMLINK call with thresholds of 1024: a Read chunk at position 128", reply: "SYMLINK reply", threshold: 1024},
		{call: "READDIRPLUS call with thresholds of 1024", reply: "READDIRPLUS reply by the Reply chunk: NOMSG", chunk: 124 + 2564, threshold: 1024},
	} {
		var h, answer wire.Header
		_, err := h.Parse(all[c.call])
		require.NoError(t, err, c.call)
		n, err := answer.Parse(all[c.reply])
		require.NoError(t, err, c.reply)
		body := all[c.reply][n:]
		msg := slices.Concat(body, make([]byte, wire.Padded(c.data)+c.chunk))
		var r Reply
		require.NoError(t, r.Make(&h, len(msg), Result{Off: len(body), Len: c.data, OK: c.data > 0}, credits, c.threshold), c.call)
		require.Equal(t, all[c.reply], append(r.Header.Append(nil), inlineOf(&r, msg)...), c.call)
		written := 0
		for _, w := range r.Writes {
			written += w.Spans[0].Len + w.Spans[1].Len
		}
		require.Equal(t, c.data+c.chunk, written)
	}
}

// TestRPR_6_GoldenCalls: where the argument of a captured call goes.
func TestRPR_6_GoldenCalls(t *testing.T) {
	all := captures.Headers(t)
	for what, want := range map[string]Read{
		"WRITE call: a Read chunk of 1 MiB at position 108":                  {Handle: 0x1876d008, Offset: 0x562cbf040e143000, At: 108, Len: 1 << 20},
		"SYMLINK call with thresholds of 1024: a Read chunk at position 128": {Handle: 0x97d09201, Offset: 0x26e93fc67e93a000, At: 128, Len: 900},
	} {
		var h wire.Header
		n, err := h.Parse(all[what])
		require.NoError(t, err)
		var p Call
		require.NoError(t, p.Make(&h, all[what][n:], 2<<20), what)
		require.Equal(t, []Read{want}, p.Reads, what)
		require.Equal(t, []Copy{{From: 0, At: 0, Len: want.At}}, p.Copies, what)
		require.Equal(t, want.At+want.Len, p.Len, what)
	}
}
