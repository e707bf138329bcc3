package top

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
)

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		":9464":                                "http://127.0.0.1:9464/",
		"alpha:80":                             "http://alpha:80/",
		"[2001:db8::1]:9464":                   "http://[2001:db8::1]:9464/",
		"127.0.0.1:9464/metrics":               "http://127.0.0.1:9464/",
		"http://alpha/iwarp":                   "http://alpha/iwarp/",
		"https://alpha":                        "https://alpha/",
		"http://alpha:1/iwarp/state.json?x#y":  "http://alpha:1/iwarp/",
		"http://user:secret@alpha:1/a/metrics": "http://user:secret@alpha:1/a/",
	} {
		s, err := newSource(text)
		require.NoError(t, err, text)
		require.Equal(t, want, s.base)
	}
	for text, want := range map[string]string{
		"alpha":        "no port: want host:port",
		"ftp://alpha":  "want a URL of http or https",
		"http://":      "has no host",
		"alpha:http x": "is no address",
		"":             "has no host",
	} {
		_, err := newSource(text)
		require.ErrorAs(t, err, new(cli.UsageError), text)
		require.ErrorContains(t, err, want, text)
	}
}

// answering returns an HTTP server with the same answer to all requests.
func answering(t *testing.T, status int, body string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestWhatIsNoState: each error is one line that says what is at the address.
func TestWhatIsNoState(t *testing.T) {
	rnic, err := iwarp.Open(nil)
	require.NoError(t, err)
	defer rnic.Close()
	verbs, err := rnic.Listen(t.Context(), "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	defer verbs.Close()
	go func() { _, _ = verbs.Accept(context.Background()) }()
	for _, c := range []struct{ address, want string }{
		{answering(t, http.StatusNotFound, "404 page not found"), "404 Not Found; give the address of iwarp perf --metrics"},
		{answering(t, http.StatusMisdirectedRequest, "by its numbers only\n"), "421 Misdirected Request (by its numbers only); give"},
		{answering(t, http.StatusForbidden, "<html>no\x1b[2J"), "403 Forbidden; give"},
		{answering(t, http.StatusForbidden, "no\x1b[2J"), "403 Forbidden (no?[2J); give"},
		{answering(t, http.StatusOK, "iwarp_qps 3\n"), "is no state of iWARP connections (invalid character 'i'"},
		{answering(t, http.StatusOK, `{"status":"ok"}`), "but other JSON; give the address"},
		{answering(t, http.StatusOK, `{"process":`), "unexpected EOF"},
		{answering(t, http.StatusOK, `[1]`), "is no state"},
		{verbs.Addr().String(), "the server speaks no HTTP; give the address"},
	} {
		s, err := newSource(c.address)
		require.NoError(t, err)
		_, err = s.fetch(t.Context(), patience)
		s.close()
		require.ErrorIs(t, err, cli.ErrUnconnected, c.address)
		require.ErrorContains(t, err, c.want)
	}
}

// TestSilentServer: it takes the connection, and does not answer.
func TestSilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	s, err := newSource(l.Addr().String())
	require.NoError(t, err)
	defer s.close()
	_, err = s.fetch(t.Context(), time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// A starting is a server that listens and answers only from a time on.
type starting struct {
	from   time.Time
	status int
}

func (s starting) RoundTrip(*http.Request) (*http.Response, error) {
	if time.Now().Before(s.from) {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	return &http.Response{StatusCode: s.status, Body: io.NopCloser(strings.NewReader(`{"process":{"pid":7}}`))}, nil
}

// TestProcessThatIsBeingStarted is waited for, but not for long, and not where another answers.
func TestProcessThatIsBeingStarted(t *testing.T) {
	const never = time.Hour
	for name, c := range map[string]struct {
		from, interrupt, took time.Duration
		status                int
		err                   error
	}{
		"at once":     {status: http.StatusOK},
		"soon":        {from: startTime / 2, took: startTime / 2, status: http.StatusOK},
		"never":       {from: never, took: startTime, err: syscall.ECONNREFUSED},
		"another":     {status: http.StatusNotFound, err: cli.ErrUnconnected},
		"interrupted": {from: never, interrupt: startTime / 4, took: startTime / 4, err: context.Canceled},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			if c.interrupt > 0 {
				time.AfterFunc(c.interrupt, interrupt)
			}
			began := time.Now()
			s := &source{base: "http://alpha:1/", client: http.Client{Transport: starting{began.Add(c.from), c.status}}}
			state, err := s.first(ctx, patience)
			require.ErrorIs(t, err, c.err, name)
			require.Equal(t, c.err == nil, state != nil, name)
			require.Equal(t, c.took, time.Since(began), name)
			interrupt()
		})
	}
}
