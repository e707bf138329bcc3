package matrix

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNVMeCasesAreNamedOnceAndByRole(t *testing.T) {
	seen := map[string]bool{}
	core := 0
	for _, c := range nvmeCases {
		require.False(t, seen[c.Name], "%s is there twice", c.Name)
		seen[c.Name] = true
		require.True(t, strings.HasPrefix(c.Name, "nvme/") && strings.HasSuffix(c.Name, "/"+string(c.Role)), c.Name)
		require.Positive(t, c.Limit, c.Name)
		require.Nil(t, c.Knobs, "%s: the cases of NVMe have siw as it is", c.Name)
		if c.Core {
			core++
		}
		if strings.Contains(c.Name, "/crc-on/") {
			require.True(t, seen[c.Name], c.Name)
			require.True(t, hasCase(strings.Replace(c.Name, "/crc-on/", "/crc-off/", 1)), "%s without CRC", c.Name)
		}
	}
	require.Greater(t, core, 10)
}

func hasCase(name string) bool {
	return slices.ContainsFunc(nvmeCases, func(c Case) bool { return c.Name == name })
}

func TestKernelLine(t *testing.T) {
	for _, c := range []struct {
		line  string
		level int
		text  string
		ok    bool
	}{
		{"<6>[  124.238740] nvme nvme0: creating 2 I/O queues.\n", 6, "nvme nvme0: creating 2 I/O queues.", true},
		{"<12>[    1.5] from user space", 4, "from user space", true},
		{"<3>without a time [x] y", 3, "without a time [x] y", true},
		{" continued", 0, "", false},
		{"", 0, "", false},
	} {
		level, text, ok := kernelLine(c.line)
		require.Equal(t, c.level, level, c.line)
		require.Equal(t, c.text, text, c.line)
		require.Equal(t, c.ok, ok, c.line)
	}
}

func TestObjections(t *testing.T) {
	const log = "<6>[ 1.0] nvme nvme0: creating 2 I/O queues.\n" +
		"<4>[ 1.1] nvme nvme0: Removing ctrl: NQN \"x\"\n" +
		"<4>[ 1.2] siw: got TERMINATE. layer 1, type 0, code 0\n" +
		"<6>[ 1.3] nvme nvme0: I/O 5 QID 1 timeout\n" +
		"<1>[ 1.4] BUG: kernel NULL pointer dereference\n"
	require.Equal(t, []string{
		"siw: got TERMINATE. layer 1, type 0, code 0", "nvme nvme0: I/O 5 QID 1 timeout", "BUG: kernel NULL pointer dereference",
	}, objections(log, nil))
	require.Equal(t, []string{"BUG: kernel NULL pointer dereference"}, objections(log, []string{`siw: got TERMINATE`, `timeout`}))
	require.Empty(t, objections("", []string{"x"}))
}

func TestCompareOctets(t *testing.T) {
	const n = 3<<20 + 512
	var b bytes.Buffer
	_, err := io.CopyN(&b, newRandomOctets(1), n)
	require.NoError(t, err)
	good := b.Bytes()
	require.NoError(t, compareOctets(bytes.NewReader(good), newRandomOctets(1), n))
	require.Error(t, compareOctets(bytes.NewReader(good), newRandomOctets(2), n), "another seed")
	require.ErrorContains(t, compareOctets(bytes.NewReader(good[:n-1]), newRandomOctets(1), n), "EOF", "too short")
	good[n-1] ^= 1
	require.ErrorContains(t, compareOctets(bytes.NewReader(good), newRandomOctets(1), n), "octet 3146239 of 3146240 differs")
	require.NoError(t, compareOctets(bytes.NewReader(make([]byte, 512)), zeroOctets{}, 512))
}

func TestDiskName(t *testing.T) {
	for name, want := range map[string]bool{"nvme0n1": true, "nvme10n2": true, "nvme0c0n1": false, "nvme0n1p1": false, "nullb0": false} {
		require.Equal(t, want, diskName.MatchString(name), name)
	}
}

func TestFioIOPS(t *testing.T) {
	iops, err := fioIOPS("fio: a remark\n{\n \"jobs\": [{\"read\": {\"iops\": 100.5}, \"write\": {\"iops\": 20}}]\n}\n")
	require.NoError(t, err)
	require.InDelta(t, 120.5, iops, 0.001)
	for _, bad := range []string{"", "{}", "remark", "{\"jobs\": [{\"read\": {\"iops\": 0}}]}"} {
		_, err := fioIOPS(bad)
		require.Error(t, err, "%q", bad)
	}
}

func TestFioArguments(t *testing.T) {
	require.Contains(t, fio{rw: "write", bs: "1m", jobs: 4, size: "16m"}.args("/dev/x"), "--bsrange=1m-1m")
	require.Contains(t, fio{rw: "write", bs: "512-1020k", jobs: 4, size: "16m"}.args("/dev/x"), "--bsrange=512-1020k")
}

func TestMedian(t *testing.T) {
	require.InDelta(t, 2, median([]float64{3, 1, 2}), 0)
	require.InDelta(t, 5, median([]float64{5}), 0)
}
