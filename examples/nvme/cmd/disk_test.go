package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/nvme/host"
	"github.com/goiwarp/iwarp/examples/nvme/target"
)

// TestEverything runs serve, discover, write, read, verify, and a graceful end.
func TestEverything(t *testing.T) {
	dir := t.TempDir()
	image := filepath.Join(dir, "disk,1.img")
	v := serve(t, "-backing", "file:"+strings.ReplaceAll(image, ",", ",,")+",size=16MiB", "-backing", "mem:16MiB,bs=512", "-stats", "1h")

	out := ok(t, "discover", v.addr)
	for _, want := range []string{"2 records", "subnqn:      " + v.nqn, "nvme subsystem", "trtype:      rdma", "traddr:      127.0.0.1"} {
		require.Contains(t, out, want)
	}
	lines := strings.Split(ok(t, "list", v.addr, "-nqn", v.nqn), "\n")
	require.Contains(t, strings.Join(strings.Fields(lines[1]), " "), "1 16MiB 4096 B rw")
	require.Contains(t, strings.Join(strings.Fields(lines[2]), " "), "2 16MiB 512 B rw")

	// Both by files and by the standard streams, with less than a piece and with several pieces.
	data := random(2*piece + 8192)
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	require.NoError(t, os.WriteFile(from, data, 0o600))
	ok(t, "write", v.addr, "-offset", "8KiB", "-file", from)
	ok(t, "read", v.addr, "-offset", "8KiB", "-length", "2105344", "-file", to, "-crc=false")
	back, err := os.ReadFile(to)
	require.NoError(t, err)
	require.Equal(t, data, back)
	onDisk, err := os.ReadFile(image)
	require.NoError(t, err)
	require.Equal(t, data, onDisk[8192:8192+len(data)])
	_, err = nvme(t, data[:4096], "write", v.addr, "-nsid", "2", "-offset", "16773120", "-length", "1024")
	require.NoError(t, err)
	require.Equal(t, string(data[:1024])+strings.Repeat("\x00", 3072), ok(t, "read", v.addr, "-nsid", "2", "-offset", "16773120"))

	out = ok(t, "verify", v.addr, "-time", "200ms", "-jobs", "2", "-queues", "2", "-depth", "8", "-seed", "7")
	require.Contains(t, out, "seed 7: ")
	require.Contains(t, out, ", 0 errors in ")

	require.NoError(t, v.stop())
	_, more := <-v.lines
	require.False(t, more, "there is nothing more to say")
	var st target.Stats
	diag := v.diag.String() // the log, and the counters as its last line
	require.NoError(t, json.Unmarshal([]byte(diag[strings.LastIndex(diag, "{"):]), &st), diag)
	require.Positive(t, st.Commands)
	require.Zero(t, st.Queues)
	onDisk, err = os.ReadFile(image)
	require.NoError(t, err)
	require.Contains(t, string(onDisk), "\x07\x00\x00\x00\x00\x00\x00\x00", "what verify has written")
}

// TestEndWithAHost: what a host was told is written is in the file when the server has ended.
func TestEndWithAHost(t *testing.T) {
	image := filepath.Join(t.TempDir(), "disk.img")
	v := serve(t, "-backing", "file:"+image+",size=1MiB")
	c := connected(t, v)
	list, err := c.Namespaces(t.Context())
	require.NoError(t, err)
	data := random(64 << 10)
	_, err = list[0].WriteAt(data, 4096)
	require.NoError(t, err)
	require.NoError(t, v.stop())
	require.Equal(t, host.EventDisconnected, (<-c.Events()).Kind)
	onDisk, err := os.ReadFile(image)
	require.NoError(t, err)
	require.Equal(t, data, onDisk[4096:4096+len(data)])
}

func TestWhatIsPrinted(t *testing.T) {
	v := serve(t, "-backing", "mem:1MiB,ro", "-max-queues", "2", "-icd", "8192", "-nqn", "nqn.2026-11.org.example:disk")
	out := ok(t, "id", v.addr, "-queues", "5", "-depth", "7")
	for _, want := range []string{"subnqn    : nqn.2026-11.org.example:disk\n", "mdts      : 8\n", "ioccsz    : 516\n", "queues    : 2 of 7 commands\n"} {
		require.Contains(t, out, want)
	}
	require.Contains(t, ok(t, "id", v.addr, "-nsid", "1"), "nsze      : 256\nlbads     : 12\nreadonly  : true\n")
	require.Contains(t, ok(t, "list", v.addr), " ro ")
	for page, want := range map[string]string{
		"smart": "media_errors", "error": "status    : 0x000", "firmware": "frs1", "changed": "0 namespaces", "effects": "io    0x02 :",
	} {
		require.Contains(t, ok(t, "log", v.addr, "-page", page), want)
	}
	_, err := nvme(t, random(4096), "write", v.addr)
	require.ErrorContains(t, err, "write 4096 octets at 0: nvme: 0x020")
	b, err := nvme(t, nil, "verify", v.addr, "-time", "0s", "-jobs", "1", "-depth", "1", "-size", "4096")
	require.NoError(t, err, "there is nothing to compare")
	require.Contains(t, string(b), "0 writes, 1 reads, 0 octets compared, 0 errors")
}

// TestVerifyFindsErrors: verify finds the errors of a target.
func TestVerifyFindsErrors(t *testing.T) {
	v := serve(t, "-backing", "mem:8MiB,cap=1MiB")
	out, err := nvme(t, nil, "verify", v.addr, "-time", "1s", "-jobs", "2", "-depth", "4")
	require.ErrorContains(t, err, " errors")
	require.Regexp(t, `(?m)^error: write of \d+ octets at \d+: nvme: 0x081`, string(out))
}

func TestStampTellsWhatIsWrong(t *testing.T) {
	const bs = 512
	right := stamp{seed: 1, block: 5, generation: 9}
	got, want := make([]byte, bs), make([]byte, bs)
	right.fill(got)
	require.NoError(t, right.check(got, want))
	got[100]++
	require.ErrorContains(t, right.check(got, want), "octet 100 of the block is not that of generation 9")
	for text, wrong := range map[string]stamp{
		"generation 8 instead of 9": {seed: 1, block: 5, generation: 8},
		"block 4 instead of 5":      {seed: 1, block: 4, generation: 9},
		"seed 2 instead of 1":       {seed: 2, block: 5, generation: 9},
	} {
		wrong.fill(got)
		require.ErrorContains(t, right.check(got, want), text)
	}
}
