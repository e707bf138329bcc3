package perf

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer/peertest"
	"github.com/goiwarp/iwarp/transport"
)

// TestMain is also the program that the command starts once more as its server.
func TestMain(m *testing.M) {
	peertest.Main(m, func(args []string) error {
		return cli.Run(context.Background(), Command(), args, peertest.Streams())
	}, "perf")
}

func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	page, profile := filepath.Join(dir, "page.html"), filepath.Join(dir, "profile")
	var out bytes.Buffer
	args := []string{"--op", "write", "--size", "4K", "--chunk", "64", "--pairs", "1", "--span", "2ms", "--html", page, "--cpuprofile", profile}
	require.NoError(t, cli.Run(t.Context(), Command(), args, cli.Streams{Out: &out, Err: t.Output()}))
	require.Contains(t, out.String(), "write_4K")
	require.Contains(t, out.String(), "peak memory", "of both processes")
	for _, file := range []string{page, profile + ".client", profile + ".server"} {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Positive(t, info.Size(), file)
	}
}

func TestSuiteThatMissesFails(t *testing.T) {
	var out bytes.Buffer
	args := []string{"--suite", "standard", "--case", "copies", "--json"}
	err := cli.Run(t.Context(), Command(), args, cli.Streams{Out: &out, Err: t.Output()})
	if err != nil {
		require.ErrorIs(t, err, marks.ErrMissed)
	}
	require.Equal(t, err != nil, strings.Contains(out.String(), `"met":false`), "the exit status follows the rows")
}

// TestSuiteIsPrintedWithoutItsPlots: its cases have been measured when the server ends.
func TestSuiteIsPrintedWithoutItsPlots(t *testing.T) {
	o, err := parsed([]string{"--suite", "standard", "--case", "copies", "--html", filepath.Join(t.TempDir(), "page.html")})
	require.NoError(t, err)
	c, server := net.Pipe()
	require.NoError(t, server.Close())
	var out bytes.Buffer
	require.Error(t, o.measure(t.Context(), c, cli.Streams{Out: &out, Err: t.Output()}))
	require.Contains(t, out.String(), "copies/octet")
}

// startServer runs a server in this process and returns a control connection to it.
func startServer(t *testing.T) *remote {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- (&server{host: "127.0.0.1"}).serve(ctx, l, false) }()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		stop()
		require.NoError(t, <-done, "an interrupt ends the server")
	})
	return &remote{c: c}
}

// brief is enough to see that something works.
var brief = pairing{pairs: 2, span: 3 * time.Millisecond}

func TestEveryKindOfWork(t *testing.T) {
	r := startServer(t)
	for _, c := range []struct {
		name    string
		subject workload
		base    string
	}{
		{"write", workload{Op: opWrite, Size: 4096, Depth: 8}, "tcp"},
		{"read", workload{Op: opRead, Size: 4096, Depth: 8, Region: 1 << 16}, "tcp"},
		{"send", workload{Op: opSend, Size: 64, Depth: 64, Batch: 16, Moderate: true, CRC: true}, "tcp"},
		{"Write with Immediate", workload{Op: opImm, Size: 4096, Depth: 64, Batch: 16, Moderate: true, CRC: true}, "tcp"},
		{"timed Immediate", workload{Op: opImm, Size: 64, Latency: true}, "tcp"},
		{"atomic", workload{Op: opAtomic, Size: 8, Region: 12, Depth: 16, CRC: true}, "tcp"},
		{"timed atomic", workload{Op: opAtomic, Size: 8, Latency: true}, "tcp"},
		{"ping-pong", workload{Op: opPingPong, Size: 64, CRC: true}, "tcp"},
		{"polled ping-pong", workload{Op: opPingPong, Size: 64, Poll: time.Millisecond}, "tcp"},
		{"blocked ping-pong", workload{Op: opPingPong, Size: 64, Wait: waitBlock}, "tcp"},
		{"timed read", workload{Op: opRead, Size: 4096, Latency: true}, "tcp"},
		{"timed write", workload{Op: opWrite, Size: 4096, Latency: true}, "tcp"},
		{"duplex write", workload{Op: opWrite, Size: 1 << 16, Depth: 4, Duplex: true}, "tcp"},
		{"duplex read", workload{Op: opRead, Size: 1 << 16, Depth: 4, Duplex: true}, "tcp"},
		{"several connections", workload{Op: opWrite, Size: 4096, Depth: 4, Conns: 3, CRC: true, Markers: true}, "tcp"},
		{"rpc", workload{Op: opRPC, Size: 4096, Depth: 8, Region: 1 << 16, CRC: true}, "reqresp"},
		{"timed rpc", workload{Op: opRPC, Size: 64, Latency: true}, "tcp"},
		{"rpc by RDMA Read, several connections", workload{Op: opRPCWrite, Size: 1 << 16, Depth: 4, Conns: 2}, "tcp"},
		{"rpc by Sends", workload{Op: opRPCSend, Size: 4096, Depth: 8, Region: 1 << 16, CRC: true}, "tcp"},
		{"slow and idle ones beside it", workload{Op: opRead, Size: 4096, Depth: 4, Slow: 16, Idle: 4}, alone},
		{"over TLS", workload{Op: opWrite, Size: 1 << 16, Depth: 4, Conns: 2, CRC: true, Auth: "tls"}, "tls"},
		{"over TLS, timed", workload{Op: opPingPong, Size: 64, Auth: "tls"}, "tls"},
		{"against http", workload{Op: opRead, Size: 1 << 16, Depth: 2}, "http"},
		{"against grpc", workload{Op: opRead, Size: 1 << 16, Depth: 2}, "grpc"},
		{"against requests and answers", workload{Op: opRead, Size: 4096, Depth: 8, Conns: 3}, "reqresp"},
		{"against requests and answers, one sink", workload{Op: opRead, Size: 1 << 16, Depth: 2, Shared: true}, "reqresp"},
		{"against requests and answers, timed", workload{Op: opRead, Size: 4096, Latency: true}, "reqresp"},
		{"against http, timed", workload{Op: opRead, Size: 1 << 16, Latency: true}, "http"},
	} {
		o := options{baseline: c.base, pairing: brief}
		c.subject.Kind = "iwarp"
		c.subject.Chunk = 1 << 16 // no time to look for the best one
		rows, err := o.compare(r, c.subject)
		require.NoError(t, err, c.name)
		require.Len(t, rows, map[bool]int{false: 4, true: 5}[c.subject.filled().Latency], c.name)
		for _, one := range rows[:2] {
			require.Positive(t, *one.Value, "%s: %s", c.name, one.Metric)
			require.Positive(t, *one.Ratio, "%s: %s", c.name, one.Metric)
		}
	}
}

// TestTimedOperationsAreOfOneConnection: their cost is not divided among connections that do nothing.
func TestTimedOperationsAreOfOneConnection(t *testing.T) {
	r := startServer(t)
	for _, kind := range []string{"iwarp", "tcp"} {
		a, err := openArm(r, workload{Kind: kind, Op: opPingPong, Size: 64, Conns: 3}, brief.span)
		require.NoError(t, err)
		s, err := a.run()
		require.NoError(t, err)
		require.NoError(t, a.close())
		require.Equal(t, len(s.times), s.ops, kind)
		require.Equal(t, 2*64*s.ops, s.octets, kind)
	}
}

// TestServerThatSaysNothing: a program that accepts a connection need not be a server.
func TestServerThatSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, silent := net.Pipe()
		var running sync.WaitGroup
		running.Go(func() { _, _ = io.Copy(io.Discard, silent) })
		began := time.Now()
		require.ErrorIs(t, (&remote{c: c}).greet(t.Context()), context.DeadlineExceeded)
		require.Equal(t, peer.Timeout, time.Since(began))

		require.NoError(t, c.Close())
		running.Wait()
	})
}

// TestGreetingLeavesTheConnectionAsItWas: later requests may take longer.
func TestGreetingLeavesTheConnectionAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, far := net.Pipe()
		var running sync.WaitGroup
		running.Go(func() { _ = new(server).client(t.Context(), far) })
		r := &remote{c: c}
		require.NoError(t, r.greet(t.Context()))
		time.Sleep(2 * peer.Timeout)
		_, err := r.do(request{Memory: true})
		require.NoError(t, err)

		require.NoError(t, c.Close())
		running.Wait()
	})
}

func TestWhatCannotBeDoneIsAnError(t *testing.T) {
	r := startServer(t)
	_, err := r.do(request{Open: &workload{Kind: "iwarp", Op: "fly"}})
	require.ErrorContains(t, err, `no operation "fly"`, "the server says why")
	_, err = r.do(request{Close: 7})
	require.ErrorContains(t, err, "no such service")
	_, err = brief.compare(r, workload{Kind: "http", Op: opWrite, Size: 64}, nil)
	require.ErrorContains(t, err, "can only read")
	_, err = brief.compare(r, workload{Kind: "iwarp", Op: opWrite, Size: 64}, nil)
	require.NoError(t, err, "the server goes on")
}

// TestServerHasNoHalfOfAWorkload that is not duplex: its goroutine that answers messages would mistake the completions of what it sends
// for receives that do not exist.
func TestServerHasNoHalfOfAWorkload(t *testing.T) {
	r := startServer(t)
	for _, op := range []string{opWrite, opSend, opPingPong, opImm} {
		w := workload{Kind: "iwarp", Op: op, Size: 64, Depth: 1024}.filled()
		a, err := openArm(r, w, brief.span)
		require.NoError(t, err)
		_, err = r.do(request{Run: &runOrder{Service: a.service, N: 1}})
		require.ErrorContains(t, err, "is not duplex", op)
		require.NoError(t, a.close())
	}
}

func TestSuiteReportsWhatCannotBeMeasured(t *testing.T) {
	r := startServer(t)
	o := options{pairing: brief}
	bad := workload{Kind: "none", Op: opWrite, Size: 64}
	var complaint bytes.Buffer
	suite := []measurement{compared(bad, bad, []goal{ratioAtLeast("bad", throughput, 1)})}
	rows, met, err := o.runSuite(t.Context(), r, suite, &complaint)
	require.NoError(t, err)
	require.False(t, met, "a case without a value fails the suite")
	require.Len(t, rows, 2)
	require.Nil(t, rows[0].Value)
	require.False(t, *rows[0].Met)
	require.Contains(t, complaint.String(), "bad: ")

	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	rows, _, err = o.runSuite(interrupted, r, suite, &complaint)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, rows, "what was not measured was not missed")
}

// A twofold yields two cases, of which the first misses its target.
type twofold struct{}

func (twofold) cases() []goal {
	return []goal{valueAtMost("missed", throughput, 1), valueAtMost("met", throughput, 2)}
}

func (t twofold) measure(pairing, *remote, string) (rows []row, err error) {
	for _, g := range t.cases() {
		value := 2.0
		rows = append(rows, row{Case: g.name, Value: &value})
	}
	return rows, nil
}

// TestCaseIsJudgedAlone: a case that is measured along with it was not selected.
func TestCaseIsJudgedAlone(t *testing.T) {
	for _, c := range []struct {
		only   list
		scrape time.Duration
		met    bool
		want   []string
	}{
		{nil, 0, false, []string{"missed", "met"}},
		{list{"met"}, 0, true, []string{"met"}},
		{list{"missed", "other"}, 0, false, []string{"missed"}},
		{list{"met"}, time.Second, false, []string{"missed", "met"}}, // they have other names
	} {
		o := options{only: c.only, scrape: c.scrape}
		rows, met, err := o.runSuite(t.Context(), nil, []measurement{twofold{}}, io.Discard)
		require.NoError(t, err)
		require.Equal(t, c.met, met, "%v", c.only)
		var names []string
		for _, r := range rows {
			names = append(names, r.Case)
		}
		require.Equal(t, c.want, names)
	}
}

func TestIdleConnections(t *testing.T) {
	r := startServer(t)
	c := &idleCase{idle: 50, rss: 8, ratio: 0.9}
	rows, err := c.measure(brief, r, "")
	require.NoError(t, err)
	require.Len(t, rows, len(c.cases()))
	require.Positive(t, *rows[1].Ratio)
}

// A stage copies what it is asked to frame: the witness must see that.
func TestWitnessSeesCopies(t *testing.T) {
	a, b, err := socketPair("")
	require.NoError(t, err)
	defer b.Close()
	source := make([]byte, 100)
	w := &outWitness{Stream: transport.NewStream(a, nil), source: addressOf(source)}
	_, err = w.Write([][]byte{make([]byte, 10), source[:40], source[90:]}, true)
	require.NoError(t, err)
	require.Equal(t, 50, w.lent, "what does not come from the source itself is a copy")
	require.NoError(t, a.Close())

	in := &inWitness{reads: []arrival{{off: 0, n: 10, addr: addressOf(source).from}}}
	require.Equal(t, 10, in.unmoved(0, source[:10]))
	require.Equal(t, 0, in.unmoved(0, source[1:11]), "elsewhere")
	require.Equal(t, 6, in.unmoved(4, source[4:20]), "what came in this read")
}

func TestStandardSuiteIsComplete(t *testing.T) {
	have := make(map[string]bool)
	for _, m := range standard {
		for _, g := range m.cases() {
			have[g.name] = true
		}
	}
	for _, name := range []string{
		"read_1m_nocrc", "write_1m_nocrc", "write_1m_crc", "read_1m_crc", "read_64m_crc", "write_64m_crc", "cpu_1m_nocrc",
		"cpu_1m_crc", "write_4k_d32", "read_4k_d32", "send_64b_batch", "pingpong_64b", "pingpong_64b_block", "pingpong_64b_poll", "read_4k_latency",
		"read_1m_http", "read_1m_grpc", "clients_256", "idle_10k", "copies", "allocs_write_1m_nocrc", "allocs_idle_10k",
		"pingpong_64b_block_rate", "pingpong_64b_block_p99", "read_4k_d8_reqresp", "read_4k_d8_shared_reqresp", "read_4k_d32_reqresp",
		"read_4k_d32_shared_reqresp", "read_4k_d128_reqresp", "read_4k_d128_shared_reqresp", "read_16k_d8_reqresp",
		"read_16k_d8_shared_reqresp", "read_64k_d2_reqresp", "read_64k_d2_shared_reqresp", "read_64k_d8_reqresp",
		"read_64k_d8_shared_reqresp", "busy_4_4k", "busy_16_4k", "busy_64_4k", "busy_4_16k", "busy_16_16k", "busy_64_16k",
	} {
		require.True(t, have[name], "case %s", name)
	}
}

// Workloads that are compared with requests and answers differ from them in nothing else.
func TestRowsAgainstRequests(t *testing.T) {
	var shared, conns int
	for _, m := range standard {
		c, ok := m.(*comparison)
		if !ok || c.against != "reqresp" {
			continue
		}
		require.LessOrEqual(t, c.span, 50*time.Millisecond, "there are many of them")
		w := c.subject
		require.Equal(t, "iwarp", w.Kind)
		w.Kind = "reqresp"
		require.Equal(t, c.baseline, w)
		w = w.filled()
		require.NoError(t, w.check())
		if w.Shared {
			shared++
		}
		if w.Conns > 1 {
			conns++
		}
	}
	require.Equal(t, 6, shared, "each shape is there with one sink, too")
	require.Equal(t, 6, conns, "three numbers of connections with two sizes")

	r := startServer(t)
	rows, err := reads(4*kib, 8, true, ratioAtLeast("x", rate, 1)).measure(brief, r, "")
	require.NoError(t, err)
	require.Len(t, rows, 2, "and its allocations")
	require.Equal(t, []string{"x", "rate", "reqresp"}, []string{rows[0].Case, rows[0].Metric, rows[0].Baseline})
	require.Positive(t, *rows[0].Ratio)
}

func TestNoServer(t *testing.T) {
	err := cli.Run(t.Context(), Command(), []string{"--connect", "127.0.0.1:1"}, cli.Streams{Out: t.Output(), Err: t.Output()})
	require.ErrorContains(t, err, "refused")
}
