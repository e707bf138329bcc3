package connectperf

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/authmode"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer/peertest"
)

// TestMain is also the program that the command starts once more as its processes.
func TestMain(m *testing.M) {
	peertest.Main(m, func(args []string) error {
		return cli.Run(context.Background(), Command(), args, peertest.Streams())
	}, "perf", "connect")
}

func command(t *testing.T, args ...string) (string, error) {
	var out bytes.Buffer
	err := cli.Run(t.Context(), Command(), args, cli.Streams{Out: &out, Err: t.Output()})
	return out.String(), err
}

// TestCM_54_EachPointIsMeasured in each way and with each authentication.
func TestCM_54_EachPointIsMeasured(t *testing.T) {
	out, err := command(t, "--json", "--repeats", "1", "--conns", "3", "--delay", "1ms", "--how", "serial,each,many", "--auth", "plain,a,b,b2,tls", "--window", "2")
	require.NoError(t, err)
	var all gridReport
	require.NoError(t, json.Unmarshal([]byte(out), &all))
	require.Len(t, all.Points, 15)
	for _, r := range all.Points {
		s := r.Samples[0]
		require.Equal(t, 3, s.N)
		require.Greater(t, s.P50, time.Millisecond, "%v: the peer is late", s.point)
		require.GreaterOrEqual(t, s.P99, s.P50)
		require.Greater(t, s.Read, time.Millisecond)
		require.Positive(t, s.Goroutines)
		require.Greater(t, r.Raw[0].Total, time.Millisecond)
		require.Equal(t, howRaw, r.Raw[0].How)
	}
}

func TestCM_54_TheTableOfPoints(t *testing.T) {
	out, err := command(t, "--conns", "2", "--repeats", "1")
	require.NoError(t, err)
	require.Contains(t, out, "cpu / raw")
	require.Contains(t, out, "n=2 delay=0s many(256) plain")
}

// TestCM_54_AllMarksAreMeasured, with so few connections that the results have no meaning.
func TestCM_54_AllMarksAreMeasured(t *testing.T) {
	r := &report{ctx: t.Context(), stderr: t.Output(), repeats: 1, largest: 4}
	for _, measure := range []func() error{r.overlap, r.pipeline, r.againstRaw, r.againstEach, r.authentication, r.flood} {
		require.NoError(t, measure())
	}
	require.Len(t, r.Marks, 16)
	var out bytes.Buffer
	require.NoError(t, r.Marks.Print(&out))
	require.Contains(t, out.String(), "T(16) / T(1), peer delay 30ms")
}

func TestWrongCalls(t *testing.T) {
	for _, args := range [][]string{
		{"--nonsense"}, {"--conns", "0"}, {"--conns", "many"}, {"--delay", "-1s"}, {"--delay", "1"}, {"--how", "somehow"}, {"--auth", "none"}, {"--window", "0"}, {"--repeats", "-1", "--conns", "1"},
	} {
		_, err := command(t, args...)
		require.Error(t, err, args)
	}
}

func TestTooFewFiles(t *testing.T) {
	g := grid{n: numbers{16, 4096}, delay: times{0}, how: words{howMany}, auth: words{authmode.Plain}, window: numbers{256}}
	require.NoError(t, g.check(math.MaxUint64))
	require.ErrorContains(t, g.check(4096), "ulimit -n 4416")
}

func TestPointsOfAGrid(t *testing.T) {
	g := grid{n: numbers{8}, how: words{howSerial, howEach, howMany}, auth: words{authmode.Plain}, window: numbers{2, 4}}
	var all []string
	for _, p := range g.points(time.Millisecond) {
		all = append(all, p.String())
	}
	require.Equal(t, []string{
		"n=8 delay=1ms serial plain", "n=8 delay=1ms each plain", "n=8 delay=1ms many(2) plain", "n=8 delay=1ms many(4) plain",
	}, all)
	require.Equal(t, 1, g.points(0)[0].raw().Window, "as many in flight")
}

// TestWithoutAConnection: if all set-ups fail there are no times for quantiles, and the error is that of the set-ups.
func TestWithoutAConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nothing := l.Addr().String()
	require.NoError(t, l.Close())

	control, server := net.Pipe()
	var answering sync.WaitGroup
	answering.Go(func() {
		for asked := bufio.NewScanner(server); asked.Scan(); {
			_, _ = server.Write([]byte("{}\n")) // the client sees why it has failed
		}
	})
	defer answering.Wait()
	c := &client{control: control, in: bufio.NewReader(control), addrs: map[string]string{authmode.Plain: nothing}, configs: make(map[string]*iwarp.QPConfig)}
	c.rnic, err = iwarp.Open(nil)
	require.NoError(t, err)
	defer c.close()
	c.pd, err = c.rnic.AllocPD()
	require.NoError(t, err)
	_, err = c.measure(t.Context(), point{N: 2, How: howSerial, Auth: authmode.Plain, Window: 1})
	require.ErrorContains(t, err, "refused")
}

func TestStatistics(t *testing.T) {
	of := func(totals ...time.Duration) (l samples) {
		for _, d := range totals {
			l = append(l, &sample{Total: d})
		}
		return l
	}
	a, b := of(2, 9, 8), of(1, 3, 8)
	require.InDelta(t, 2, a.ratio(b, totalOf), 1e-9)
	require.InDelta(t, 1, a.less(b, totalOf), 1e-9)
	require.InDelta(t, 8, a.median(totalOf), 1e-9)
	require.Zero(t, (&sample{Peak: 1, Kept: 2}).passing())
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	require.Error(t, cli.Run(ctx, Command(), []string{"--conns", "100", "--delay", "1s", "--how", "serial"}, cli.Streams{Out: t.Output(), Err: t.Output()}))
}
