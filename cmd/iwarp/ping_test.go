package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/transport"
)

func TestPingData(t *testing.T) {
	b := make([]byte, 32)
	fillPing(b, 0)
	require.Equal(t, "rdma-ping-0: ABCDEFGHIJKLMNOPQR\x00", string(b), "first ping")
	fillPing(b, 57)
	require.Equal(t, "rdma-ping-57: zABCDEFGHIJKLMNOP\x00", string(b), "the circle ends at z")
	fillPing(b, 58)
	require.Equal(t, "rdma-ping-58: ABCDEFGHIJKLMNOPQ\x00", string(b), "and begins again")
	b = make([]byte, maxSize)
	fillPing(b, 1<<31-1)
	require.Len(t, text(b), maxSize-1, "all but the NUL is text")
}

// TestPingPrintsNothingThatATerminalObeys: the data come from a peer, which need not be a ping.
func TestPingPrintsNothingThatATerminalObeys(t *testing.T) {
	require.Equal(t, "a?[2J?]0;x????~ ?", text([]byte("a\x1b[2J\x9b]0;x\a\r\n\x7f~ \xff\x00behind")))

	var out bytes.Buffer
	client := &pinger{stdout: &out, verbose: true}
	client.newReport("peer").ping(0, time.Millisecond, []byte("\x1bc\x00"))
	require.Equal(t, "ping data: ?c\n", out.String())
}

// TestPingOfAPeerThatSaysNothing: a program that accepts a connection need not use iWARP.
func TestPingOfAPeerThatSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pinger{client: true, network: "pipe", addr: "silent", port: 1, size: minSize, stdout: t.Output(), log: slog.New(slog.DiscardHandler)}
		l, err := transport.Listen(t.Context(), p.network, p.hostport(), transport.Options{})
		require.NoError(t, err)
		began := time.Now()
		require.ErrorIs(t, p.run(t.Context()), context.DeadlineExceeded)
		require.Equal(t, setupTime, time.Since(began))
		require.NoError(t, l.Close())
	})
}

func TestInfo(t *testing.T) {
	var b [infoLen]byte
	rb := iwarp.RemoteBuffer{TO: 0x0102030405060708, STag: 0x090a0b0c, Len: 0x0d0e0f10}
	putInfo(b[:], rb)
	require.Equal(t, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, b[:], "the octets on the wire")
	require.Equal(t, rb, parseInfo(b[:]), "and back")
}

// server runs a server until the test ends or, without -P, its client leaves.
func server(t *testing.T, args ...string) (port string, result func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	require.NoError(t, l.Close())
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	done := make(chan error, 1)
	listening := make(chan struct{})
	go func() {
		w := &waiter{want: "listening", found: listening}
		done <- runIwarp(ctx, w, append([]string{"ping", "-s", "-d", "-a", "127.0.0.1", "-p", port}, args...)...)
	}()
	<-listening
	return port, func() error {
		defer stop()
		return <-done
	}
}

// A waiter closes found when a line with want is written.
type waiter struct {
	want  string
	found chan struct{}
}

func (w *waiter) Write(b []byte) (int, error) {
	if w.found != nil && strings.Contains(string(b), w.want) {
		close(w.found)
		w.found = nil
	}
	return len(b), nil
}

func pingClient(t *testing.T, port string, args ...string) (string, error) {
	var out bytes.Buffer
	args = append([]string{"ping", "-c", "-a", "127.0.0.1", "-p", port, "-V"}, args...)
	err := cli.Run(t.Context(), rootCommand(), args, cli.Streams{Out: &out, Err: io.Discard})
	return out.String(), err
}

func TestPing(t *testing.T) {
	for _, size := range []int{minSize, 64, 4096, maxSize} {
		s := fmt.Sprint(size)
		port, result := server(t, "-S", s)
		_, err := pingClient(t, port, "-C", "20", "-S", s)
		require.NoError(t, err, "20 pings of %d octets come back", size)
		require.NoError(t, result(), "the server ends with its client")
	}
}

// TestPingOfAnAddressWithItsPort: HOST:PORT, which the other commands take, is understood too.
func TestPingOfAnAddressWithItsPort(t *testing.T) {
	port, result := server(t)
	var out bytes.Buffer
	err := cli.Run(t.Context(), rootCommand(), []string{"ping", "127.0.0.1:" + port, "-C", "1"}, cli.Streams{Out: &out, Err: io.Discard})
	require.NoError(t, err)
	require.Contains(t, out.String(), "127.0.0.1:"+port)
	require.NoError(t, result())
}

// TestPingOfAnAddressInBrackets, with its port or without.
func TestPingOfAnAddressInBrackets(t *testing.T) {
	for addr, want := range map[string]string{"[::1]": "::1", "::1": "::1", "[fe80::1%eth0]": "fe80::1%eth0", "[]": "[]", "[": "[", "[::1]:7": "::1"} {
		p := &pinger{addr: addr}
		require.NoError(t, p.splitPort(false))
		require.Equal(t, want, p.addr)
	}
}

func TestPingOverSCTP(t *testing.T) {
	port, result := server(t, "--network", "sctp+udp")
	_, err := pingClient(t, port, "-C", "20", "--network", "sctp+udp")
	require.NoError(t, err)
	require.NoError(t, result())
}

func TestPingVerbose(t *testing.T) {
	port, result := server(t)
	out, err := pingClient(t, port, "-C", "2", "-S", "24", "-v")
	require.NoError(t, err)
	require.NoError(t, result())
	require.True(t, strings.HasPrefix(out, "ping data: rdma-ping-0: ABCDEFGHIJ\nping data: rdma-ping-1: BCDEFGHIJK\n--- 127.0.0.1:"+port+": 2 pings of 24 octets in "), "as rping prints it: %s", out)
}

// runIwarp runs iwarp, whose errors and log go to w.
func runIwarp(ctx context.Context, w io.Writer, args ...string) error {
	return cli.Run(ctx, rootCommand(), args, cli.Streams{Out: io.Discard, Err: w})
}

const rtt = `[\d.]+ [um]s`

// TestPingPrints what a user of ping expects.
func TestPingPrints(t *testing.T) {
	port, result := server(t)
	out, err := pingClient(t, port, "-C", "3")
	require.NoError(t, err)
	require.NoError(t, result())
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	require.Len(t, lines, 6, out)
	require.Equal(t, "iwarp ping 127.0.0.1:"+port+": 64 octets there and back by RDMA", lines[0])
	for i, line := range lines[1:4] {
		require.Regexp(t, fmt.Sprintf(`^64 octets from 127.0.0.1:%s: seq=%d time=%s$`, port, i, rtt), line)
	}
	require.Regexp(t, `^--- 127.0.0.1:`+port+`: 3 pings of 64 octets in [\d.]+ [um]?s$`, lines[4])
	require.Regexp(t, `^round trip min/avg/p50/p99/max = `+strings.Repeat(rtt+"/", 4)+rtt+`$`, lines[5])
}

func TestPingQuiet(t *testing.T) {
	port, result := server(t)
	out, err := pingClient(t, port, "-C", "3", "-q")
	require.NoError(t, err)
	require.NoError(t, result())
	require.Equal(t, 2, strings.Count(out, "\n"), out)
	require.True(t, strings.HasPrefix(out, "--- "), out)
}

func TestPingJSON(t *testing.T) {
	port, result := server(t)
	out, err := pingClient(t, port, "-C", "2", "--json")
	require.NoError(t, err)
	require.NoError(t, result())
	lines := objects(t, out)
	require.Len(t, lines, 3)
	require.EqualValues(t, 1, lines[1]["seq"])
	require.Positive(t, lines[1]["rtt_us"])
	require.EqualValues(t, 2, lines[2]["summary"].(map[string]any)["pings"])
}

// TestPingInterrupted: Ctrl-C ends pings without number, and the summary is printed.
func TestPingInterrupted(t *testing.T) {
	port, result := server(t)
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	w := &waiter{want: "seq=1 ", found: make(chan struct{})}
	found := w.found
	go func() {
		<-found
		cancel()
	}()
	args := []string{"ping", "127.0.0.1", "-p", port, "--interval", "1ms"}
	require.NoError(t, cli.Run(ctx, rootCommand(), args, cli.Streams{Out: io.MultiWriter(&out, w), Err: io.Discard}))
	require.Contains(t, out.String(), "round trip min/avg/p50/p99/max")
	_ = result() // the client has left, perhaps in the middle of a ping
}

func TestPingReportKeepsSomeTimes(t *testing.T) {
	r := &pingReport{out: io.Discard}
	for i := range mostTimes + 1000 {
		r.count(time.Duration(i+1) * time.Microsecond)
	}
	require.Len(t, r.times, mostTimes)
	require.Equal(t, time.Microsecond, r.least)
	require.Equal(t, (mostTimes+1000)*time.Microsecond, r.longest)
	require.Equal(t, "85.3 us", rttText(85300))
	require.Equal(t, "30.0 ms", rttText(30*time.Millisecond))
	require.Equal(t, "61.2 s", rttText(61200*time.Millisecond))
	require.Equal(t, "1 ping", pingsText(1))
	require.Equal(t, "0 pings", pingsText(0))
}

func TestPingTooLongForTheServer(t *testing.T) {
	port, result := server(t, "-S", "64")
	_, err := pingClient(t, port, "-C", "1", "-S", "65")
	require.ErrorIs(t, err, net.ErrClosed, "the client's connection ends")
	require.ErrorContains(t, result(), "this side takes 64", "the server says why")
}

func TestPersistentServer(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	listening, done := make(chan struct{}), make(chan error, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	require.NoError(t, l.Close())
	go func() {
		w := &waiter{want: "listening", found: listening}
		done <- runIwarp(ctx, w, "ping", "-s", "-P", "-d", "-a", "127.0.0.1", "-p", port)
	}()
	<-listening
	const clients = 8
	errs := make(chan error, clients)
	for range clients {
		go func() {
			_, err := pingClient(t, port, "-C", "10")
			errs <- err
		}()
	}
	for range clients {
		require.NoError(t, <-errs, "every client is served")
	}
	stop()
	require.NoError(t, <-done, "an interrupt ends the server")
}
