package main

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/exporter"
	"github.com/goiwarp/iwarp/internal/rnictest"
	"github.com/goiwarp/iwarp/stag"
)

// writing returns the address of the page of this process, in which two QPs are connected over loopback, and one of them writes.
// gone ends the page.
func writing(t *testing.T) (page string, listener *iwarp.Listener, gone func()) {
	ctx := t.Context()
	rnic, pd := rnictest.Open(t, &iwarp.Config{Latency: true})
	listener, err := rnic.Listen(ctx, "tcp", "127.0.0.1:0", nil)
	require.NoError(t, err)
	accepted := make(chan error, 1)
	go func() {
		request, err := listener.Accept(ctx)
		if err == nil {
			_, err = request.Accept(ctx, &iwarp.QPConfig{PD: pd})
		}
		accepted <- err
	}()
	qp, err := rnic.Dial(ctx, "tcp", listener.Addr().String(), &iwarp.QPConfig{PD: pd})
	require.NoError(t, err)
	require.NoError(t, <-accepted)
	mr, err := pd.RegisterMR(make([]byte, 4096), stag.LocalWrite|stag.RemoteWrite, nil)
	require.NoError(t, err)

	stopped, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for stopped.Err() == nil {
			if qp.RDMAWrite(stopped, mr.Advertise(0, 4096), mr.Slice(0, 4096)) != nil {
				return
			}
		}
	}()
	set := exporter.NewSet()
	set.Add(rnic)
	e, err := set.Serve(ctx, "127.0.0.1:0")
	require.NoError(t, err)
	gone = sync.OnceFunc(func() { require.NoError(t, e.Close()) })
	t.Cleanup(func() {
		gone()
		stop()
		<-ended
	})
	return e.URL(), listener, gone
}

// busy runs a command line until it has printed that something was moved: the goroutine that writes may not have run during an interval.
func busy(t *testing.T, moved func(out string) bool, args ...string) (out string) {
	for range 50 {
		if out = succeeds(t, args...); moved(out) {
			break
		}
	}
	return out
}

// TestTop prints the page of live connections, and errors for other things at addresses.
func TestTop(t *testing.T) {
	page, listener, _ := writing(t)
	received := regexp.MustCompile(`(?m)^in  .* [1-9][0-9.]* [kMG]?B/s `)
	out := busy(t, received.MatchString, "top", "--once", "--interval", "200ms", page)
	require.Regexp(t, received, out)
	require.Regexp(t, `(?m)^p50/p99  RDMA Write +[0-9.]+[num]?s`, out)
	require.Regexp(t, `(?m)^errors   none$`, out)
	require.Contains(t, out, "1 RNIC, 2 QPs")
	rows := strings.Split(strings.TrimSpace(out), "\n")
	rows = rows[len(rows)-2:]
	require.Regexp(t, `^127\.0\.0\.1:[0-9]+ .* raw TCP +RTS +[1-9]`, rows[0]+rows[1])

	var all []map[string]any
	var first map[string]any
	busy(t, func(out string) bool {
		all = objects(t, out)
		require.Len(t, all, 2)
		qps := all[1]["qps"].([]any)
		require.Len(t, qps, 2)
		first = qps[0].(map[string]any)
		return first["sent_rate"].(map[string]any)["octets"].(float64) > 4096
	}, "top", "--json", "-n", "2", "--interval", "200ms", "--sort", "sent", strings.TrimPrefix(page, "http://"))
	require.Equal(t, listener.Addr().String(), first["remote"], "that of the QP that writes")
	require.Greater(t, first["sent_rate"].(map[string]any)["octets"], 4096.0)
	require.GreaterOrEqual(t, all[1]["interval_ns"], 200e6)
	require.NotContains(t, succeeds(t, "top", "--once", "--interval", "200ms", "--filter", "nothing", page), "RTS")

	fails(t, cli.Unconnected, "404 Not Found; give the address of iwarp perf --metrics", "top", "--once", page+"elsewhere")
	fails(t, cli.Unconnected, "speaks no HTTP; give the address of", "top", "--once", listener.Addr().String())
	nothing, _ := free(t)
	fails(t, cli.Unconnected, "start the server (iwarp perf --metrics, iwarp serve --http, or a program with monitor.NewHandler)", "top", "--once", nothing)
}
