package rsocket_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rsocket"
)

// TestRSK_19_HTTP runs many clients at once, with bodies longer than the memory of a Conn.
func TestRSK_19_HTTP(t *testing.T) {
	rnic, err := iwarp.Open(nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, rnic.Close()) }()
	listener, err := rsocket.Listen(t.Context(), rnic, "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, err = w.Write(body)
		}
		if err != nil {
			t.Error(err)
		}
	}))
	require.NoError(t, server.Listener.Close())
	server.Listener = listener
	server.Start()
	defer server.Close()
	transport := &http.Transport{DialContext: rsocket.Dialer(rnic, nil)}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}

	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			body := bytes.Repeat([]byte{byte(i)}, 1<<20)
			response, err := client.Post(server.URL, "application/octet-stream", bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			got, err := io.ReadAll(response.Body)
			if err != nil || !bytes.Equal(got, body) {
				t.Error(len(got), err)
			}
			_ = response.Body.Close()
		})
	}
	all.Wait()
}
