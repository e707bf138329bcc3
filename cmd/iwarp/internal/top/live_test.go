package top

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/monitor"
)

// A server serves the states of a scene, a second later each time.
func server(t *testing.T, c *scene) (address string) {
	var seconds atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/state.json" {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(c.state(int(seconds.Add(1)))) // the client may have gone
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// opened returns what a page needs of a server.
func opened(t *testing.T, address string) (*source, *monitor.State) {
	from, err := newSource(address)
	require.NoError(t, err)
	t.Cleanup(from.close)
	first, err := from.fetch(t.Context(), patience)
	require.NoError(t, err)
	return from, first
}

// A drawing is what a page has drawn.
type drawing struct {
	mu   sync.Mutex
	text strings.Builder
}

func (d *drawing) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *drawing) waitFor(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return strings.Contains(d.text.String(), text)
	}, 20*time.Second, time.Millisecond, text)
}

// TestPageWithoutATerminal: keys come from a pipe, and the drawing goes to a buffer. The page ends in the documented
// ways.
func TestPageWithoutATerminal(t *testing.T) {
	o := &options{interval: time.Millisecond, sort: "rate"}
	from, first := opened(t, server(t, &scene{pid: 7, qps: 3}))
	for _, c := range []struct {
		key  string
		want error
	}{{"q", nil}, {"\x03", cli.ErrInterrupted}, {"", context.Canceled}} {
		ctx, cancel := context.WithCancel(t.Context())
		keys, typed := io.Pipe()
		var out drawing
		ended := make(chan error, 1)
		go func() { ended <- o.live(ctx, from, first, keys, &out, tea.WithWindowSize(80, 24)) }()
		out.waitFor(t, "store, pid 7 on alpha")
		out.waitFor(t, "1.23MB") // a rate: it has fetched again
		_, err := io.WriteString(typed, "?")
		require.NoError(t, err)
		out.waitFor(t, "reverse the order")
		if c.key == "" {
			cancel()
		} else {
			_, err = io.WriteString(typed, c.key)
			require.NoError(t, err)
		}
		require.Equal(t, c.want, <-ended)
		require.NoError(t, typed.Close())
		cancel()
	}
}

// TestPrinting: one page of text, or as many lines of JSON as were requested.
func TestPrinting(t *testing.T) {
	from, first := opened(t, server(t, &scene{pid: 7, qps: 3, trouble: true}))
	var text bytes.Buffer
	require.NoError(t, (&options{once: true, interval: time.Nanosecond, sort: "remote", filter: "100.2"}).print(t.Context(), from, first, &text))
	require.Contains(t, text.String(), "REMOTE")
	require.Contains(t, text.String(), "198.51.100.2:40001")
	require.NotContains(t, text.String(), "198.51.100.1:40000")
	require.Contains(t, text.String(), "a code that no RFC has", "all errors")

	var lines bytes.Buffer
	require.NoError(t, (&options{json: true, count: 3, interval: time.Nanosecond}).print(t.Context(), from, first, &lines))
	require.Equal(t, 3, strings.Count(lines.String(), "\n"))
	d := json.NewDecoder(&lines)
	for range 3 {
		var v monitor.View
		require.NoError(t, d.Decode(&v))
		require.Len(t, v.Rows, 3)
		require.NotZero(t, v.Received.Octets)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, (&options{json: true, interval: time.Hour}).print(ctx, from, first, io.Discard), context.Canceled)
}
