package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp/examples/internal/program"
)

// TestMain lets the test program run as a target of demo.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// testContext returns the context of a test with targets, which big-endian hosts do not support.
func testContext(t *testing.T) context.Context {
	if bigEndian() {
		t.Skip("no target starts on a big-endian host")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestDemo(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(testContext(t), []string{"demo", "-records", "300", "-writers", "8"}, &out))
	require.Contains(t, out.String(), "target 3 is killed")
	require.Contains(t, out.String(), "target 3 is started again")
	require.Contains(t, out.String(), "the three logs are equal: 300 records")
}

func TestCompare(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(testContext(t), []string{"compare", "-records", "10", "-dir", t.TempDir()}, &out))
	require.Contains(t, out.String(), "median of 10: pushed")
}

// TestFilesOfAnEarlierRun: the error names them, and they stay as they are.
func TestFilesOfAnEarlierRun(t *testing.T) {
	dir := t.TempDir()
	for command, first := range map[string]string{"demo": "log0", "compare": "pushed"} {
		args := []string{command, "-records", "10", "-dir", dir}
		require.NoError(t, run(testContext(t), args, io.Discard))
		before, err := os.ReadFile(filepath.Join(dir, first))
		require.NoError(t, err)
		require.ErrorContains(t, run(testContext(t), args, io.Discard), filepath.Join(dir, first)+" is there already")
		after, err := os.ReadFile(filepath.Join(dir, first))
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"fly"},
		{"target"},
		{"target", "-file-size", "4294967296", filepath.Join(t.TempDir(), "log")},
		{"target", "-file-size", "4119", filepath.Join(t.TempDir(), "log")},
		{"target", "-file-size", "-1", filepath.Join(t.TempDir(), "log")},
		{"demo", "-records", "0"},
		{"demo", "-records", "2"},
		{"demo", "-records", "100000000"},
		{"demo", "-size", "16", "-records", "576460752303423488"},
		{"compare", "-records", "9223372036854775807"},
		{"demo", "-what"},
	} {
		require.ErrorAs(t, run(t.Context(), args, &bytes.Buffer{}), new(program.UsageError), "%q", args)
	}
}

func TestLogIsChecked(t *testing.T) {
	b := make([]byte, 256)
	n, err := putRecord(b, 0, []byte("zero"))
	require.NoError(t, err)
	m, err := putRecord(b[n:], 1, []byte("the first"))
	require.NoError(t, err)
	log := b[:n+m]
	records, err := checkLog(log)
	require.NoError(t, err)
	require.EqualValues(t, 2, records)
	for i := range log {
		log[i] ^= 1
		_, err := checkLog(log)
		require.Error(t, err, "octet %d", i)
		log[i] ^= 1
	}
	_, err = checkLog(log[:len(log)-1])
	require.Error(t, err)
	_, err = putRecord(b[:20], 2, []byte("too long"))
	require.ErrorIs(t, err, errFull)
}

// A cluster is three targets in this process.
type cluster struct {
	*testing.T
	ctx     context.Context
	size    int64
	paths   [3]string
	addrs   []string
	targets [3]*target
}

func newCluster(t *testing.T) *cluster { return newClusterOf(t, start+4096) }

// newClusterOf makes a cluster whose files have size octets.
func newClusterOf(t *testing.T, size int64) *cluster {
	c := &cluster{T: t, ctx: testContext(t), size: size, addrs: make([]string, 3)}
	dir := t.TempDir()
	for i := range c.targets {
		c.paths[i], c.addrs[i] = filepath.Join(dir, string(rune('a'+i))), "127.0.0.1:0"
		c.start(i)
		t.Cleanup(func() { c.targets[i].close() })
	}
	return c
}

func (c *cluster) start(i int) {
	t, err := openTarget(c.ctx, c.addrs[i], c.paths[i], c.size)
	require.NoError(c, err)
	c.targets[i], c.addrs[i] = t, t.l.Addr().String()
	go func() { _ = t.accept(c.ctx) }()
}

func (c *cluster) lose(i int) { c.targets[i].close() }

func (c *cluster) writer() *writer {
	w, err := openWriter(c.ctx, c.addrs, c.size)
	require.NoError(c, err)
	return w
}

// holdsOne makes all targets hold the record "one". Its writer has ended.
func (c *cluster) holdsOne() {
	w := c.writer()
	require.NoError(c, w.append(c.ctx, []byte("one")))
	require.NoError(c, w.settle(c.ctx))
	require.NoError(c, w.close())
}

// holdsTwo makes all targets hold the record "one", and all but target 2, which is lost, also "two". Their writer has
// ended.
func (c *cluster) holdsTwo() {
	w := c.writer()
	require.NoError(c, w.append(c.ctx, []byte("one")))
	require.NoError(c, w.settle(c.ctx))
	c.lose(2)
	require.NoError(c, w.append(c.ctx, []byte("two")))
	require.NoError(c, w.close())
}

// records returns the records of a target's file.
func (c *cluster) records(i int) string {
	b, err := os.ReadFile(c.paths[i])
	require.NoError(c, err)
	word := make([]byte, 8)
	copy(word, b)
	var m mark
	for k := range 8 {
		m.tail |= uint64(word[k]) << (8 * k)
	}
	m = markOf(m.tail)
	log := b[start:m.tail]
	_, err = checkLog(log)
	require.NoError(c, err)
	var records []string
	for len(log) > 0 {
		n := int(binary.LittleEndian.Uint32(log))
		records = append(records, string(log[recordHead:recordHead+n]))
		log = log[recordLen(n):]
	}
	return strings.Join(records, " ")
}

func TestRecoveryAfterTheLossOfAnyOne(t *testing.T) {
	for lost := range 3 {
		c := newCluster(t)
		w := c.writer()
		require.NoError(t, w.append(c.ctx, []byte("one")))
		require.NoError(t, w.settle(c.ctx))
		c.lose(lost)
		require.NoError(t, w.append(c.ctx, []byte("two")), "two targets are enough")
		require.NoError(t, w.close())

		w = c.writer()
		require.NoError(t, w.append(c.ctx, []byte("three")), "a new writer goes on")
		c.start(lost)
		require.NoError(t, w.settle(c.ctx))
		require.NoError(t, w.close())
		for i := range c.targets {
			require.Equal(t, "one two three", c.records(i), "target %d, after the loss of %d", i, lost)
		}
	}
}

// TestOldTermIsGivenUp: a target has a record that no majority has seen, and lacks the record that replaced it.
func TestOldTermIsGivenUp(t *testing.T) {
	c := newCluster(t)
	w := c.writer()
	require.NoError(t, w.append(c.ctx, []byte("one")))
	require.NoError(t, w.settle(c.ctx))
	c.lose(0)
	c.lose(1)
	end, err := w.put([]byte("lost"))
	require.NoError(t, err)
	require.NoError(t, w.when(c.ctx, func() bool { return w.links[2].acked == end }), "only the third has it")
	require.NoError(t, w.close())
	c.lose(2)
	_, err = openWriter(c.ctx, c.addrs, start+4096)
	require.ErrorContains(t, err, "0 of 3 targets")

	c.start(0)
	c.start(1)
	w = c.writer()
	require.NoError(t, w.append(c.ctx, []byte("two")))
	require.NoError(t, w.close())
	c.lose(0)
	c.start(2)
	w = c.writer()
	require.NoError(t, w.append(c.ctx, []byte("three")))
	c.start(0)
	require.NoError(t, w.settle(c.ctx))
	require.NoError(t, w.close())
	for i := range c.targets {
		require.Equal(t, "one two three", c.records(i), "target %d", i)
	}
}

func TestFullLog(t *testing.T) {
	c := newCluster(t)
	w := c.writer()
	defer func() { require.NoError(t, w.close()) }()
	require.NoError(t, w.append(c.ctx, make([]byte, 4000)))
	require.ErrorIs(t, w.append(c.ctx, make([]byte, 100)), errFull)
}

// TestTargetWhoseDemoIsKilled: it ends by itself, because the system closes the demo's end of its standard input.
func TestTargetWhoseDemoIsKilled(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	c, err := spawn(testContext(t), "127.0.0.1:0", filepath.Join(t.TempDir(), "log"), 1<<20)
	require.NoError(t, err)
	defer c.kill()
	require.NoError(t, c.in.Close())
	require.NoError(t, c.cmd.Wait(), "its status is 0")
}

// TestTargetOnABigEndianHost: it is refused before it makes a file.
func TestTargetOnABigEndianHost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that a target that has started ends nevertheless
	err := run(ctx, []string{"target", "-file-size", "8192", path}, io.Discard)
	if !bigEndian() {
		require.FileExists(t, path)
		return
	}
	require.ErrorContains(t, err, "little-endian")
	require.NoFileExists(t, path)
}

// TestExitStatus: help is no failure, and a wrong call has its own status.
func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{{[]string{"-h"}, 0}, {[]string{"help"}, 0}, {[]string{"demo", "-h"}, 0}, {nil, 2}, {[]string{"demo", "-nonsense"}, 2}} {
		err := run(t.Context(), c.args, io.Discard)
		require.Equal(t, c.want, program.Status("walog", err, io.Discard), "%q", c.args)
	}
}
