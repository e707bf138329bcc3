package perf

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSizes(t *testing.T) {
	var z sizes
	require.NoError(t, z.Set("64,4K,1m,1G"))
	require.Equal(t, sizes{64, 4096, 1 << 20, 1 << 30}, z)
	require.Equal(t, "64,4K,1M,1G", z.String())
	for _, s := range []string{"", "0", "-1", "K", "1T", "1KK", "2G", "9999999999G", "x"} {
		require.Error(t, z.Set(s), "%q is no size", s)
	}
}

func TestOptions(t *testing.T) {
	o, err := parseOptions([]string{"-op", "write,read", "-size", "4K", "-depth", "2", "-region", "1M"}, io.Discard)
	require.NoError(t, err)
	ws := o.workloads()
	require.Len(t, ws, 2, "each operation with each size")
	require.Equal(t, "read", ws[1].Op)
	require.True(t, ws[1].CRC, "as the library does by default")

	require.Equal(t, 1<<20, ws[1].filled().Region)
	require.False(t, ws[1].Shared, "each Read has a sink of its own")

	o, err = parseOptions([]string{"-op", "read", "-size", "1M", "-depth", "2048", "-shared", "-baseline", "reqresp"}, io.Discard)
	require.NoError(t, err, "2 GiB of sinks would be too many")
	require.True(t, o.workloads()[0].Shared)
	require.Equal(t, "reqresp", o.baseline)

	o, err = parseOptions([]string{"-op", "imm,atomic", "-size", "4K,1M"}, io.Discard)
	require.NoError(t, err)
	ws = o.workloads()
	require.Len(t, ws, 3, "an atomic operation has one size only")
	require.Equal(t, 8, ws[2].Size)

	for _, args := range [][]string{
		{"-s", "-c", "x"},
		{"-suite", "other"},
		{"-baseline", "iwarp"},
		{"-pairs", "0"},
		{"-op", "fly"},
		{"-op", "send", "-duplex"},
		{"-depth", "1000000"},
		{"-op", "read", "-size", "1M", "-depth", "2048"},
		{"-nonsense"},
		{"rest"},
	} {
		_, err := parseOptions(args, io.Discard)
		var wrong UsageError
		require.ErrorAs(t, err, &wrong, "%q is refused", args)
	}
}
