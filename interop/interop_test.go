package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp/interop/matrix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCPIO(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "f"), []byte("hello"), 0o640))
	require.NoError(t, os.Symlink("f", filepath.Join(root, "l")))
	require.NoError(t, os.Chmod(root, 0o755))
	var b bytes.Buffer
	require.NoError(t, writeCPIO(&b, root))
	const zeros = "0000000000000000" // uid and gid
	want := "070701" + "00000001" + "000041ed" + zeros + "00000001" + "00000000" + "00000000" +
		"00000000000000000000000000000000" + "00000002" + "00000000" + ".\x00" +
		"070701" + "00000002" + "000081a0" + zeros + "00000001" + "00000000" + "00000005" +
		"00000000000000000000000000000000" + "00000002" + "00000000" + "f\x00" + "hello\x00\x00\x00" +
		"070701" + "00000003" + "0000a1ff" + zeros + "00000001" + "00000000" + "00000001" +
		"00000000000000000000000000000000" + "00000002" + "00000000" + "l\x00" + "f\x00\x00\x00" +
		"070701" + "00000000" + "00000000" + zeros + "00000001" + "00000000" + "00000000" +
		"00000000000000000000000000000000" + "0000000b" + "00000000" + "TRAILER!!!\x00\x00\x00\x00"
	require.Equal(t, want, b.String(), "folder, file, link, end")
}

func TestModuleLine(t *testing.T) {
	const deps = "kernel/net/9p/9pnet_virtio.ko: kernel/net/9p/9pnet.ko\nkernel/crypto/crc32c-generic.ko:\nkernel/net/9p/9pnet.ko:\n"
	require.Equal(t, "kernel/net/9p/9pnet_virtio.ko: kernel/net/9p/9pnet.ko\n", moduleLine(deps, "9pnet_virtio"), "with what it needs")
	require.Equal(t, "kernel/net/9p/9pnet.ko:\n", moduleLine(deps, "9pnet"), "the whole name")
	require.Equal(t, "kernel/crypto/crc32c-generic.ko:\n", moduleLine(deps, "crc32c_generic"), "the two dashes are one")
	require.Empty(t, moduleLine(deps, "siw"), "not there")
}

func TestEdit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(file, []byte("const bool try_gso;\nrest\n"), 0o644))
	require.NoError(t, edit(file, edits{constant("try_gso")}))
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "bool try_gso;\nmodule_param(try_gso, bool, 0644);\nrest\n", string(b), "a constant becomes a parameter")
	require.ErrorContains(t, edit(file, edits{constant("try_gso")}), "the source has changed", "what is not there is an error")
}

func TestIsLibrary(t *testing.T) {
	for name, want := range map[string]bool{
		"libc6": true, "zlib1g": true, "libperl5.36": false, "libc6:i386": false, "debconf": false,
	} {
		require.Equal(t, want, isLibrary(name), name)
	}
}

// TestReporterFailsWhatDidNotEnd: a guest that stops in the middle fails the cases that it did not end.
func TestReporterFailsWhatDidNotEnd(t *testing.T) {
	share := t.TempDir()
	cases := []*matrix.Case{&matrix.Cases[0], &matrix.Cases[1], &matrix.Cases[2]}
	results := `{"Name":"` + cases[0].Name + `"}` + "\n" +
		`{"Name":"` + cases[0].Name + `","Done":true,"Why":"no data"}` + "\n" +
		`{"Name":"` + cases[1].Name + `"}` + "\n" + `{"Na`
	require.NoError(t, os.WriteFile(filepath.Join(share, "results"), []byte(results), 0o644))
	ended := make(chan error, 1)
	ended <- nil
	l := &lab{}
	r := &reporter{lab: l, kernel: "6.1", share: share, cases: cases, byName: index(cases)}
	end, err := r.follow(t.Context(), ended)
	require.NoError(t, err)
	r.reportMissing(end)
	require.Equal(t, 3, l.failed, "one that failed, one that did not end, one that never began")
	require.Zero(t, l.passed)
}

func TestSelected(t *testing.T) {
	l := &lab{config: config{core: true}}
	l.run = regexp.MustCompile("")
	for _, c := range l.selected(stock) {
		require.True(t, c.Core && c.Knobs == nil, c.Name)
	}
	require.NotEmpty(t, l.selected(withKnobs))
}

// TestListHasWhatWouldRun: and nothing else.
func TestListHasWhatWouldRun(t *testing.T) {
	listed := func(c config) (names []string) {
		var out bytes.Buffer
		(&lab{config: c}).list(&out)
		for line := range strings.Lines(out.String()) {
			names = append(names, strings.Fields(line)[0])
		}
		return names
	}
	one := matrix.Cases[3].Name
	require.Equal(t, []string{one}, listed(config{run: regexp.MustCompile("^" + regexp.QuoteMeta(one) + "$")}))
	all := regexp.MustCompile("")
	core := 0
	for _, c := range matrix.Cases {
		if c.Core {
			core++
		}
	}
	require.Len(t, listed(config{run: all, core: true}), core)
	require.Len(t, listed(config{run: all}), len(matrix.Cases))
	figures := listed(config{run: all, table: matrix.NVMe, figures: true})
	require.NotEmpty(t, figures)
	require.NotSubset(t, listed(config{run: all, table: matrix.NVMe}), figures)
}

// TestChoiceIsChecked: before anything is installed or removed.
func TestChoiceIsChecked(t *testing.T) {
	all := regexp.MustCompile("")
	some := regexp.MustCompile("crc")
	for _, c := range []config{
		{table: matrix.Matrix, run: some, core: true},
		{table: matrix.NVMe, run: all, figures: true},
		{table: matrix.Mounts, run: all, figures: true},
		{table: matrix.Matrix, run: all, planted: sabotages},
		{table: matrix.NVMe, run: all, cuts: 2},
		{table: matrix.Matrix, run: all, cuts: 2, faults: true},
	} {
		require.NoError(t, c.checkChoice(), "%+v", c)
	}
	for want, refused := range map[string][]config{
		"no case is chosen": {
			{table: matrix.Matrix, run: all, figures: true},
			{table: matrix.Streams, run: all, figures: true},
			{table: matrix.NVMe, run: all, planted: sabotages},
			{table: matrix.Matrix, run: regexp.MustCompile("zzz")},
		},
		"are not for -power": {
			{table: matrix.Matrix, run: all, core: true, cuts: 2},
			{table: matrix.Matrix, run: some, creations: 2},
			{table: matrix.NVMe, run: all, figures: true, cuts: 2},
		},
		"are not for -sabotage": {
			{table: matrix.Matrix, run: some, planted: sabotages},
			{table: matrix.Matrix, run: all, core: true, planted: sabotages},
		},
	} {
		for _, c := range refused {
			require.ErrorContains(t, c.checkChoice(), want, "%+v", c)
		}
	}
}

func TestLock(t *testing.T) {
	l := &lab{config: config{cache: t.TempDir()}}
	unlock, err := l.lock(t.Context(), l.cache)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = l.lock(ctx, l.cache)
	require.ErrorIs(t, err, context.DeadlineExceeded, "a second run waits")
	unlock()
	again, err := l.lock(t.Context(), l.cache)
	require.NoError(t, err, "and gets its turn")
	again()
}

// TestJudgeSCTP: frames that are not DDP over SCTP in a capture are noticed.
func TestJudgeSCTP(t *testing.T) {
	const (
		init     = "1\t1\t0x8000,0xc006\t0x00000001\t\t\t\t\n"
		initAck  = "2\t2\t0x0007,0xc006\t0x00000001\t\t\t\t\n"
		messages = "3\t3,0,0\t\t\t1,1\t1,1\t1,1\t17,16\n"
	)
	require.NoError(t, judgeSCTP(init+initAck+messages))
	for why, packets := range map[string]string{
		"no INIT ACK":             init + messages,
		"no PPID 16":              init + initAck,
		"INIT with the indicatio": strings.Replace(init, "0x00000001", "", 1) + initAck + messages,
		"INIT ACK with the indic": init + strings.Replace(initAck, "0x00000001", "0x00000002", 1) + messages,
		"identifier 0":            init + initAck + strings.Replace(messages, "17,16", "17,0", 1),
		"U, B and E":              init + initAck + strings.Replace(messages, "1,1", "1,0", 1),
		"2 messages":              init + initAck + strings.Replace(messages, "17,16", "17", 1),
		"tshark tells":            init + "4\t0\n",
	} {
		require.ErrorContains(t, judgeSCTP(packets), why)
	}
}
