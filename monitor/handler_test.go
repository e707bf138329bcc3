package monitor

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rnictest"
)

// request requests a path from a Handler that listens at local.
func request(h http.Handler, method, path, host, local string) *httptest.ResponseRecorder {
	q := httptest.NewRequest(method, "http://"+host+path, nil)
	if local != "" {
		at, _ := net.ResolveTCPAddr("tcp", local) // numbers
		q = q.WithContext(context.WithValue(q.Context(), http.LocalAddrContextKey, net.Addr(at)))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, q)
	return w
}

// state requests /state.json.
func state(t testing.TB, h http.Handler) *State {
	t.Helper()
	w := request(h, http.MethodGet, "/state.json", "127.0.0.1:80", "127.0.0.1:80")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	s := &State{}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), s))
	return s
}

// TestRNICsComeAndGo, and none has the ID of another.
func TestRNICsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := rnictest.Open(t, nil)
		b, _ := rnictest.Open(t, nil)
		h := NewHandler()
		require.Empty(t, state(t, h).RNICs)
		h.Add(a)
		require.Empty(t, state(t, h).RNICs, "it is as fresh as it has to be")
		time.Sleep(freshness)
		require.Equal(t, 0, state(t, h).RNICs[0].ID)
		h.Remove(a)
		h.Add(b)
		time.Sleep(freshness)
		require.Len(t, state(t, h).RNICs, 1)
		require.Equal(t, 1, state(t, h).RNICs[0].ID)
		time.Sleep(forgetTime)
		synctest.Wait()
		require.Nil(t, h.newest, "what no one asks for is dropped")
	})
}

// TestPageComparesStatesThatAreApart, however many clients request it.
func TestPageComparesStatesThatAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler()
		first := h.pageStates()
		require.Nil(t, first.before)
		time.Sleep(shortest / 2)
		require.Equal(t, first, h.pageStates())
		time.Sleep(shortest / 2)
		second := h.pageStates()
		require.Same(t, first.after, second.before)
		require.Equal(t, shortest, second.after.Uptime-second.before.Uptime)
		time.Sleep(forgetTime)
		synctest.Wait()
		require.Nil(t, h.pageStates().before)
	})
}

// TestOtherNamesOfALoopbackAddressAreRefused, and no others.
func TestOtherNamesOfALoopbackAddressAreRefused(t *testing.T) {
	h := NewHandler()
	for _, c := range []struct {
		host, local string
		want        int
	}{
		{"localhost:9464", "127.0.0.1:9464", http.StatusOK},
		{"LocalHost", "127.0.0.1:9464", http.StatusOK},
		{"127.0.0.1:9464", "127.0.0.1:9464", http.StatusOK},
		{"127.0.0.1", "127.0.0.1:80", http.StatusOK},
		{"[::1]:9464", "[::1]:9464", http.StatusOK},
		{"[::1]", "[::1]:80", http.StatusOK},
		{"attacker.example:9464", "127.0.0.1:9464", http.StatusMisdirectedRequest},
		{"attacker.example", "[::1]:9464", http.StatusMisdirectedRequest},
		{"attacker.example", "[::ffff:127.0.0.1]:9464", http.StatusMisdirectedRequest},
		{"localhost.attacker.example", "127.0.0.1:9464", http.StatusMisdirectedRequest},
		{"node7.example:9464", "192.0.2.7:9464", http.StatusOK},
		{"node7.example:9464", "", http.StatusOK},
	} {
		w := request(h, http.MethodGet, "/state.json", c.host, c.local)
		require.Equal(t, c.want, w.Code, c)
	}
}

// TestOnlyReading: no other method is served, and no browser may show the page inside another page, or read it from there.
func TestOnlyReading(t *testing.T) {
	h := NewHandler()
	for method, want := range map[string]int{
		http.MethodGet: 200, http.MethodHead: 200, http.MethodPost: 405, http.MethodPut: 405, http.MethodDelete: 405, http.MethodOptions: 405,
	} {
		w := request(h, method, "/state.json", "localhost", "")
		require.Equal(t, want, w.Code, method)
		header := w.Header()
		require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"))
		require.Contains(t, header.Get("Content-Security-Policy"), "default-src 'self'")
		require.Contains(t, header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
		require.Equal(t, "same-origin", header.Get("Cross-Origin-Resource-Policy"))
		require.Empty(t, header.Get("Access-Control-Allow-Origin"))
	}
}

// BenchmarkState queries 10,000 queue pairs, which is the cost of an answer for which no fresh State exists.
func BenchmarkState(b *testing.B) {
	r, pd := rnictest.Open(b, &iwarp.Config{Latency: true})
	rnictest.Pairs(b, 5000, r, r, pd, pd)
	h := NewHandler(r)
	for _, path := range []string{"/state.json", "/page.json"} {
		b.Run(path[1:], func(b *testing.B) {
			b.ReportAllocs()
			octets := 0
			for b.Loop() {
				h.drop()
				octets = request(h, http.MethodGet, path, "localhost", "").Body.Len()
			}
			b.ReportMetric(float64(octets), "octets")
		})
	}
}

// TestStateAllocatesFewTimes for each connection: most allocations are the texts of addresses.
func TestStateAllocatesFewTimes(t *testing.T) {
	const n = 100
	r, pd := rnictest.Open(t, nil)
	rnictest.Pairs(t, n/2, r, r, pd, pd)
	h := NewHandler(r)
	allocs := testing.AllocsPerRun(20, func() {
		h.drop()
		h.pageStates()
	})
	require.Less(t, allocs, 12.0*n)
}
