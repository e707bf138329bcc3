package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp/examples/internal/program"
	"github.com/goiwarp/iwarp/examples/kvstore/kv"
	"github.com/goiwarp/iwarp/internal/raceorder"
)

// TestMain lets the test program run as the server of a measurement.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// A server is a replica as the command runs it.
type server struct {
	*testing.T
	addr  string
	lines *bufio.Reader
	stop  func()
}

func startServer(t *testing.T, args ...string) *server {
	ctx, cancel := context.WithCancel(testContext(t))
	out, in := io.Pipe()
	s := &server{T: t, lines: bufio.NewReader(out)}
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"serve"}, args...), nil, in, t.Output())
		_ = in.CloseWithError(err)
		ended <- err
	}()
	s.stop = func() {
		if cancel != nil {
			cancel()
			cancel = nil
			require.NoError(t, <-ended)
		}
	}
	t.Cleanup(s.stop)
	s.addr = s.line()
	return s
}

func (s *server) line() string {
	line, err := s.lines.ReadString('\n')
	require.NoError(s, err)
	return strings.TrimSpace(line)
}

func TestCommands(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	ctx := testContext(t)
	do := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := run(ctx, args, nil, &out, io.Discard)
		return strings.TrimSpace(out.String()), err
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	_, err := do("keys", dir, "a", "b")
	require.NoError(t, err, "the directory is made")
	before, err := os.ReadFile(path("a.key"))
	require.NoError(t, err)
	_, err = do("keys", dir, "a", "c")
	require.NoError(t, err)
	after, err := os.ReadFile(path("a.key"))
	require.NoError(t, err)
	require.Equal(t, before, after, "from the same master key")

	common := []string{"-addr", "127.0.0.1:0", "-master", path(masterFile), "-tenants", "a,b", "-buckets", "64", "-values", "1048576", "-log-half", "1048576", "-rekey", "5ms"}
	backup := startServer(t, append(common, "-file", path("backup"))...)
	primary := startServer(t, append(common, "-file", path("primary"), "-backup", backup.addr)...)
	require.Equal(t, "serving", primary.line())
	require.Equal(t, "serving", backup.line())
	ask := func(what, tenant string, args ...string) (string, error) {
		return do(append([]string{what, "-primary", primary.addr, "-backup", backup.addr, "-tenant", tenant, "-key", path(tenant + ".key")}, args...)...)
	}
	_, err = ask("put", "a", "name", "value")
	require.NoError(t, err)
	got, err := ask("get", "a", "name")
	require.NoError(t, err)
	require.Equal(t, "value", got)
	_, err = ask("get", "b", "name")
	require.ErrorIs(t, err, kv.ErrNotFound)
	_, err = ask("get", "c", "name")
	require.ErrorIs(t, err, kv.ErrUnavailable, "a tenant that is not served")
	primary.stop()
	got, err = ask("get", "a", "name")
	require.NoError(t, err)
	require.Equal(t, "value", got)
	_, err = ask("delete", "a", "name")
	require.ErrorIs(t, err, kv.ErrUnavailable)
}

// TestServeTellsWhyItDoesNot: the reason is the first line of its log.
func TestServeTellsWhyItDoesNot(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, makeKeys([]string{dir, "a"}, io.Discard))
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	told, diag := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		args := []string{"serve", "-addr", "127.0.0.1:0", "-backup", gone.Addr().String(), "-file", filepath.Join(dir, "file"), "-master", filepath.Join(dir, masterFile), "-log-half", "1048576"}
		err := run(ctx, args, nil, io.Discard, diag)
		_ = diag.CloseWithError(errors.Join(err, io.EOF))
		ended <- err
	}()
	line, err := bufio.NewReader(told).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "no connection to the backup")
	require.Contains(t, line, gone.Addr().String())
	cancel()
	_ = told.Close()
	require.NoError(t, <-ended)
}

// notADirectory returns the path of a file, below which even root cannot make a directory.
func notADirectory(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	return path
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"fly"},
		{"serve"},
		{"serve", "-file", "f", "-master", "/no such file"},
		{"get"},
		{"get", "a", "b"},
		{"put", "a"},
		{"get", "-key", "/no such file", "a"},
		{"keys"},
		{"bench", "-depth", "0"},
		{"bench", "-keys", "1048577"},
		{"bench", "-what"},
		{"keys", filepath.Join(notADirectory(t), "keys"), "a"},
	} {
		require.Error(t, run(t.Context(), args, nil, io.Discard, io.Discard), "%q", args)
	}
}

// TestBench runs a short measurement. The results do not matter here.
func TestBench(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	var out bytes.Buffer
	err := run(testContext(t), []string{"bench", "-keys", "100", "-pairs", "1", "-span", "2ms", "-depth", "32"}, nil, &out, io.Discard)
	if !errors.Is(err, errMissed) {
		require.NoError(t, err)
	}
	for _, name := range []string{"plain", "sealed", "tcp"} {
		require.Contains(t, out.String(), name)
	}
}

// TestBenchThatIsStopped: the server's process ends by itself, and leaves no files.
func TestBenchThatIsStopped(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	dir := t.TempDir()
	for _, name := range []string{"TMPDIR", "TMP"} {
		t.Setenv(name, dir)
	}
	files := func() []os.DirEntry {
		list, err := os.ReadDir(dir)
		require.NoError(t, err)
		return list
	}
	ctx, stop := context.WithCancel(testContext(t))
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"bench", "-keys", "100", "-pairs", "1000000", "-span", "2ms", "-depth", "32"}, nil, io.Discard, io.Discard)
	}()
	require.Eventually(t, func() bool { return len(files()) > 0 }, time.Minute, time.Millisecond)
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Empty(t, files())
}

// manyKeys is a number that a machine stores in a part of a test's time, with other tests running. With the race
// detector, each Put takes ten times as long.
var manyKeys = map[bool]int{false: 1 << 14, true: 1 << 11}[raceorder.Enabled]

// TestBenchOfManyKeys: all of them fit into the index and the log.
func TestBenchOfManyKeys(t *testing.T) {
	s := new(benchServer)
	defer func() { require.NoError(t, s.close()) }()
	require.NoError(t, s.open(testContext(t), &options{keys: manyKeys, depth: 32}))
}

// TestBaseline: the server answers requests, and allocates nothing for them.
func TestBaseline(t *testing.T) {
	s := new(benchServer)
	defer func() { require.NoError(t, s.close()) }()
	require.NoError(t, s.open(testContext(t), &options{keys: 100, depth: 32}))
	c, err := dialTCP(s.l.Addr().String(), 32)
	require.NoError(t, err)
	seen := 0
	err = c.gets(1000, func(i int) []byte { return benchKey(i % 100) }, func(i int, value []byte) {
		require.Equal(t, benchValue(i%100), value)
		seen++
	})
	require.NoError(t, err)
	require.Equal(t, 1000, seen)
	require.ErrorContains(t, c.gets(1, func(int) []byte { return []byte("no such key") }, nil), "a value of")
	require.NoError(t, c.close())

	tenant, err := kv.RegionOf(benchTenant)
	require.NoError(t, err)
	key, dst := benchKey(1), make([]byte, 0, 100)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, ok := s.primary.AppendValue(dst, tenant, key); !ok {
			t.Error("no value")
		}
	}))

	// A connection that ends in the middle of a request ends its server.
	raw, err := net.Dial("tcp", s.l.Addr().String())
	require.NoError(t, err)
	_, err = raw.Write([]byte{10, 'a'})
	require.NoError(t, err)
	require.NoError(t, raw.Close())
}

// TestExitStatus: help is no failure, and a wrong call has its own status.
func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"-h"}, 0},
		{[]string{"help"}, 0},
		{[]string{"serve", "-h"}, 0},
		{nil, 2},
		{[]string{"serve", "-nonsense"}, 2},
		{[]string{"serve"}, 2},
		{[]string{"keys"}, 2},
		{[]string{"put", "a"}, 2},
		{[]string{"bench", "-depth", "0"}, 2},
		{[]string{"keys", filepath.Join(notADirectory(t), "keys"), "a"}, 1},
	} {
		err := run(t.Context(), c.args, nil, io.Discard, io.Discard)
		require.Equal(t, c.want, program.Status("kvstore", err, io.Discard), "%q", c.args)
	}
}

// TestMasterKeyThatIsNotWhole: a full disk may leave such a file. It stays as it is, and no key is derived from it.
func TestMasterKeyThatIsNotWhole(t *testing.T) {
	for _, left := range []string{"", "\n", "00112233\n", strings.Repeat("0", 2*kv.MasterLen-1)} {
		dir := t.TempDir()
		path := filepath.Join(dir, masterFile)
		require.NoError(t, os.WriteFile(path, []byte(left), 0o600))
		require.ErrorContains(t, makeKeys([]string{dir, "a"}, io.Discard), path+" has no key in it", "%q", left)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, left, string(after))
		require.NoFileExists(t, filepath.Join(dir, "a"+keySuffix))
	}
}

// TestKeyTakesThePlaceOfAnother: the replacement is atomic. The old file is not written to, the new one has its rights,
// and a new file that cannot take its place is removed.
func TestKeyTakesThePlaceOfAnother(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "a"+keySuffix), filepath.Join(dir, "other")
	first, second := bytes.Repeat([]byte{1}, kv.MasterLen), bytes.Repeat([]byte{2}, kv.MasterLen)
	require.NoError(t, writeKey(path, first, io.Discard))
	require.NoError(t, os.Chmod(path, 0o640))
	before, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, os.Link(path, other))
	require.NoError(t, writeKey(path, second, io.Discard))
	for name, want := range map[string][]byte{path: second, other: first} {
		got, err := readKey(name)
		require.NoError(t, err)
		require.Equal(t, want, got, name)
	}
	after, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, before.Mode(), after.Mode())

	require.NoError(t, os.Mkdir(filepath.Join(dir, "b"+keySuffix), 0o700))
	require.Error(t, writeKey(filepath.Join(dir, "b"+keySuffix), first, io.Discard))
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, all, 3, "%v", all)
}

// TestKeyOfATenantThatIsNamedMaster: it does not replace the master key.
func TestKeyOfATenantThatIsNamedMaster(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, makeKeys([]string{dir, "a"}, io.Discard))
	before, err := readKey(filepath.Join(dir, masterFile))
	require.NoError(t, err)
	for _, name := range []string{"master", "./master", "a/../master", "Master"} { // the last one is the same file where case does not matter
		require.ErrorContains(t, makeKeys([]string{dir, "b", name}, io.Discard), "would replace master.key")
	}
	after, err := readKey(filepath.Join(dir, masterFile))
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// TestNumbersThatServeRefuses: serve refuses a number of buckets that would be truncated, and a log size that stands for
// another one, before it makes a file, which would keep them for ever.
func TestNumbersThatServeRefuses(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, run(t.Context(), []string{"keys", dir, "tenant"}, nil, t.Output(), t.Output()))
	for _, numbers := range [][]string{{"-log-half", "0"}, {"-rekey", "-1s"}, {"-buckets", "4294983680"}} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		args := append([]string{"serve", "-file", filepath.Join(dir, "file"), "-master", filepath.Join(dir, masterFile), "-addr", "127.0.0.1:0"}, numbers...)
		err := run(ctx, args, nil, t.Output(), t.Output())
		require.ErrorAs(t, err, new(program.UsageError), "%q", numbers)
	}
	require.NoFileExists(t, filepath.Join(dir, "file"))
}

// TestProcessThatDoesNotStart: the error is only the reason.
func TestProcessThatDoesNotStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := startBenchChild(ctx, new(options))
	require.Equal(t, context.Canceled, err)
}
