package nvmeperf

import (
	"bytes"
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/commitperf"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer/peertest"
	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/host"
)

// TestMain is also the program that the command starts once more as its processes.
func TestMain(m *testing.M) {
	peertest.Main(m, func(args []string) error {
		switch args[0] {
		case "commit":
			return cli.Run(context.Background(), commitperf.Command(), args[1:], peertest.Streams())
		case "nvme":
			return cli.Run(context.Background(), Command(), args[1:], peertest.Streams())
		}
		return errors.New("no such command")
	}, "perf")
}

// run runs the command so briefly that its results have no meaning.
func run(t *testing.T, names string, args ...string) string {
	t.Helper()
	return peertest.Printed(t, Command(), append([]string{"--pairs", "1", "--time", "2ms", "--dir", t.TempDir(), "--run", names}, args...)...)
}

// measured is how many marks each measurement produces.
var measured = map[string]int{"read": 1, "write": 2, "keyed": 0, "throughput": 2, "flush": 1, "queues": 0, "incast": 3, "hostile": 1}

// TestEachMark is measured.
func TestEachMark(t *testing.T) {
	require.Len(t, measured, len(measurements))
	peertest.EachMark(t, measured, run, func(t *testing.T, k *marks.Mark) {
		switch {
		case strings.Contains(k.What, "queues that have ended"), strings.Contains(k.What, "of the window"):
			require.True(t, k.Met, k.What)
		default:
			require.Less(t, k.Value, 1e6, k.What)
		}
	})
}

func TestTable(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "profile")
	out := run(t, "^read$", "--cpuprofile", profile, "--crc=false")
	require.Contains(t, out, "measured")
	require.Contains(t, out, "4 KiB random reads by Transfers")
	peertest.HasProfiles(t, profile)
}

func TestWrongCalls(t *testing.T) {
	peertest.WithoutInput(t, Command).Refuses(t,
		[]string{"--nonsense"}, []string{"more"}, []string{"--pairs", "0"}, []string{"--time", "0s"}, []string{"--run", "("}, []string{"--run", "none of them"},
		[]string{"--dir", filepath.Join(t.TempDir(), "none"), "--run", "^read$"})
}

func TestInterrupted(t *testing.T) {
	peertest.WithoutInput(t, Command).EndsEarly(t, "--run", "^read", "--time", "10s")
}

// TestTargetThatHasEnded fails outstanding commands, and later ones, at once.
func TestTargetThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := backend.NewFake(backend.FakeConfig{Size: mib})
		require.NoError(t, err)
		b.Inject(backend.Fault{Call: backend.CallRead, Delay: time.Millisecond})
		d, err := newDiskOn(t.Context(), b, new(service))
		require.NoError(t, err)
		l, err := d.target.Listen(t.Context(), "pipe", "")
		require.NoError(t, err)
		d.running.Go(func() { _ = d.target.Serve(t.Context(), l) }) // it ends with the target

		o := host.Options{Network: "pipe"}
		(&bench{opts: new(options)}).settle(&o)
		o.Dial = nil // it would be TCP
		c, err := connect(t.Context(), l.Addr().String(), o)
		require.NoError(t, err)
		failed := make(chan error, 1)
		go func() { failed <- c.workers(readBlock, 4*kib, depth).run(1 << 20) }()
		time.Sleep(time.Second)
		ended := time.Now()
		require.NoError(t, d.close())
		require.Error(t, <-failed)
		require.Error(t, c.transfers(false, 4*kib, depth).run(depth))
		require.Less(t, time.Since(ended), time.Second)
		require.NoError(t, c.c.Close())
	})
}

// TestEnemyWithoutATarget is an error: measurements would not be under attack.
func TestEnemyWithoutATarget(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	synctest.Test(t, func(t *testing.T) {
		_, err := newEnemyService(t.Context(), addr)
		require.ErrorIs(t, err, errNoAttack)
	})
}

func TestWrongOrders(t *testing.T) {
	s := &server{services: make([]opened, 1)}
	for want, o := range map[string]order{
		"no service 7":        {Do: doStats, Service: 7},
		"no service is named": {Do: doOpen},
		"tape":                {Do: doOpen, Open: &service{Disk: "tape:1"}},
	} {
		_, err := s.do(t.Context(), &o)
		require.ErrorContains(t, err, want)
	}
	a, err := s.do(t.Context(), &order{Do: doOpen, Open: &service{Disk: "mem:1MiB"}})
	require.NoError(t, err)
	_, err = s.do(t.Context(), &order{Do: "dance", Service: a.Service})
	require.ErrorContains(t, err, `no order "dance"`)
	_, err = s.do(t.Context(), &order{Do: doClose, Service: a.Service})
	require.NoError(t, err)
	_, err = s.do(t.Context(), &order{Do: doClose, Service: a.Service})
	require.ErrorContains(t, err, "no service 1", "it is closed")
}

// TestNVME_81_Incast: 16 hosts write as much as they can. The target requests no more than the window, and each host has its share.
// The medium takes a millisecond for each write.
func TestNVME_81_Incast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := backend.NewFake(backend.FakeConfig{Size: 16 * mib})
		require.NoError(t, err)
		b.Inject(backend.Fault{Call: backend.CallWrite, Delay: time.Millisecond})
		d, err := newDiskOn(t.Context(), b, &service{Window: incastWindow})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.close()) })
		l, err := d.target.Listen(t.Context(), "pipe", "")
		require.NoError(t, err)
		d.running.Go(func() { _ = d.target.Serve(t.Context(), l) }) // it ends with the target
		f, err := newFlock(t.Context(), l.Addr().String(), host.Options{Network: "pipe", QPConfig: iwarp.QPConfig{MPA: iwarp.MPAOptions{NoCRC: true}}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.close()) })
		require.NoError(t, f.write(80*time.Millisecond))
		n := d.numbers()
		bench := new(bench)
		bench.judgeIncast(f, &n)
		require.False(t, bench.Marks.Missed(), "%+v", bench.Marks)
		require.LessOrEqual(t, n.Granted, int64(incastWindow))
		require.Greater(t, n.Granted, int64(incastWindow/2), "the hosts share the window")
		require.Greater(t, n.Samples, 100)
	})
}

// TestEnemy: each attack is carried out, and the target goes on.
func TestEnemy(t *testing.T) {
	d, err := newDisk(t.Context(), &service{Disk: "mem:4MiB"})
	require.NoError(t, err)
	e, err := newEnemy(d.addr())
	require.NoError(t, err)
	for i := range 2 * len(attacks) {
		a := &attacks[i%len(attacks)]
		if err := e.once(t.Context(), a); err != nil && !errors.Is(err, errStands) {
			require.ErrorIs(t, err, net.ErrClosed, "%s: the target may end the connection early", a.name)
		}
	}
	require.Len(t, e.held, 4)
	c, err := connect(t.Context(), d.addr(), host.Options{})
	require.NoError(t, err)
	p := bytes.Repeat([]byte{7}, 4*kib)
	require.NoError(t, writeAndFlush(t.Context(), c.n, p, 4*kib))
	got := make([]byte, len(p))
	require.NoError(t, readBlock(t.Context(), c.n, got, 4*kib))
	require.Equal(t, p, got)
	require.NoError(t, c.c.Close())
	require.NoError(t, e.close())
	require.NoError(t, d.close())
}
