package monitor

import (
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/internal/rnictest"
)

// TestFilesOfThePage have the type that a browser needs, wherever they are mounted.
func TestFilesOfThePage(t *testing.T) {
	h := http.StripPrefix("/iwarp", NewHandler())
	for path, want := range map[string]string{
		"/": "text/html; charset=utf-8", "/page.js": "text/javascript; charset=utf-8", "/page.css": "text/css; charset=utf-8", "/icon.svg": "image/svg+xml",
	} {
		w := request(h, http.MethodGet, "/iwarp"+path, "localhost", "")
		require.Equal(t, http.StatusOK, w.Code, path)
		require.Equal(t, want, w.Header().Get("Content-Type"), path)
		require.NotRegexp(t, `(src|href)="/`, w.Body.String(), "nothing refers to the root")
		require.Equal(t, http.StatusMethodNotAllowed, request(h, http.MethodPost, "/iwarp"+path, "localhost", "").Code)
	}
	require.Equal(t, http.StatusNotFound, request(h, http.MethodGet, "/iwarp/other", "localhost", "").Code)
}

// asked returns what the page gets.
func asked(t *testing.T, h http.Handler, query string) *page {
	t.Helper()
	w := request(h, http.MethodGet, "/page.json?"+query, "localhost", "")
	require.Equal(t, http.StatusOK, w.Code)
	p := &page{}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), p))
	return p
}

// TestPageHasWhatTheQueryAsksFor: rates come with the second answer, and the table in its order.
func TestPageHasWhatTheQueryAsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, cpd := rnictest.Open(t, nil)
		server, spd := rnictest.Open(t, nil)
		h := NewHandler(server)
		qps := rnictest.Pairs(t, 3, client, server, cpd, spd)
		p := asked(t, h, "")
		require.Nil(t, p.Point)
		require.Equal(t, "", p.Tiles[0].Value)
		require.Equal(t, "3 connections, the busiest first", p.Summary)
		require.Equal(t, "3 connections", asked(t, h, "reverse").Summary)
		time.Sleep(time.Second)
		p = asked(t, h, "sort=remote&reverse")
		require.NotNil(t, p.Point)
		require.Equal(t, "0 B/s", p.Tiles[0].Value)
		require.Equal(t, "3 connections", p.Summary)
		require.Equal(t, heading{ByRemote, "Remote", "address of the peer", true, "descending"}, p.Columns[0])
		require.Greater(t, p.Rows[0][0], p.Rows[1][0])
		for _, row := range p.Rows {
			require.Len(t, row, len(p.Columns))
		}
		at := p.Point.At
		p = asked(t, h, "sort=nonsense&filter="+qps[0].LocalAddr().String())
		require.Equal(t, at, p.Point.At, "a page that asks early knows that it has this point")
		require.Equal(t, "1 that match, of 3 connections", p.Summary)
		require.Equal(t, qps[0].LocalAddr().String(), p.Rows[0][0])
		time.Sleep(5 * time.Second)
		require.InDelta(t, at+5, asked(t, h, "").Point.At, 1e-6, "the plot is over time")
	})
}

// columns returns the columns of a page.
func columns(p *page) (all []Column) {
	for _, c := range p.Columns {
		all = append(all, c.Column)
	}
	return all
}

// TestPageHasWordsAndUnits for all that a View has.
func TestPageHasWordsAndUnits(t *testing.T) {
	q := sends(1, "10.0.0.1:1", 1000, 5_000_000)
	q.Peer = &Peer{ID: "aa", Name: "disk"}
	q.TCP = &counters.TCP{RTT: 2 * time.Millisecond, Retransmits: 7}
	q.ReceiveWaits, q.SendQueued, q.RecvQueued = 1500, 3, 4
	v := &View{
		Process: Process{Program: "program", PID: 7, Host: "host", Version: "v1.2.3"}, Uptime: 90 * time.Minute, Interval: time.Second, RNICs: 1, QPs: 1234, Matched: 1234,
		Came: 1, Went: 2, Pending: 3, Waits: Count{Total: 4}, Retransmits: Count{Total: 5},
		Received: Rate{Messages: 1200, Octets: 1.5e9}, ReceivedTotal: counters.Traffic{Messages: 10, Octets: 2000},
		Errors:    []Error{{"CQ overflows", Count{Total: 12345, New: 1}}, {"events dropped", Count{Total: 1}}},
		Latencies: []Latency{{Op: "Send", PerSec: 10, P50: 1500, TotalP99: time.Second}},
		Rows:      []Row{{QP: &q, SentRate: Rate{Messages: 100, Octets: 4096}, Waits: Count{Total: 1500}, Retransmits: Count{Total: 7}}},
	}
	p := pageOf(v, &Options{Sort: ByRate})
	require.Equal(t, "iWARP, process 7 on host, up 1 h 30 min, v1.2.3, 1 RNIC", p.About)
	require.Equal(t, []tile{
		{"Received", "1.50 GB/s", "1.20 k messages/s; total 2.00 kB in 10"},
		{"Sent", "0 B/s", "0 messages/s; total 0 B in 0"},
		{"Connections", "1,234", "1 new, 2 ended, 3 in set-up, 5 TCP segments sent again, 4 waits for a receive"},
	}, p.Tiles)
	require.Equal(t, []fault{{"CQ overflows", "12,345", "+1"}, {"events dropped", "1", ""}}, p.Errors)
	require.Equal(t, [][6]string{{"Send", "10", "1.50 µs", "", "", "1.00 s"}}, p.Latencies)
	require.Equal(t, "1 of 1,234 connections, the busiest first", p.Summary)
	require.Equal(t, [][]string{{
		"10.0.0.1:1", "", "disk", "raw TCP", "RTS", "0", "4.10 kB/s", "0", "100 /s", "3", "4", "2.00 ms", "7", "1.50 k",
	}}, p.Rows)
	require.Contains(t, columns(p), ByPeer)
	require.Contains(t, columns(p), ByRTT)

	q.Peer, q.TCP = nil, nil
	require.NotContains(t, columns(pageOf(v, &Options{})), ByPeer, "no row has it")
	require.NotContains(t, columns(pageOf(v, &Options{})), ByRTT)
	require.Contains(t, columns(pageOf(v, &Options{Sort: ByRTT})), ByRTT, "the table is in its order")
}
