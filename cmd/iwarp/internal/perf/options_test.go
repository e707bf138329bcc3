package perf

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
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

// parsed returns the options of a command line.
func parsed(args []string) (*options, error) {
	o := newOptions()
	fs := pflag.NewFlagSet("perf", pflag.ContinueOnError)
	o.flags(fs)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	return o, o.check()
}

func TestOptions(t *testing.T) {
	o, err := parsed([]string{"--op", "write,read", "--size", "4K", "--depth", "2", "--region", "1M"})
	require.NoError(t, err)
	ws := o.workloads()
	require.Len(t, ws, 2, "each operation with each size")
	require.Equal(t, "read", ws[1].Op)
	require.True(t, ws[1].CRC, "as the library does by default")

	require.Equal(t, 1<<20, ws[1].filled().Region)
	require.False(t, ws[1].Shared, "each Read has a sink of its own")

	o, err = parsed([]string{"--op", "read", "--size", "1M", "--depth", "2048", "--shared", "--baseline", "reqresp"})
	require.NoError(t, err, "2 GiB of sinks would be too many")
	require.True(t, o.workloads()[0].Shared)
	require.Equal(t, "reqresp", o.baseline)

	o, err = parsed([]string{"--op", "imm,atomic", "--size", "4K,1M"})
	require.NoError(t, err)
	ws = o.workloads()
	require.Len(t, ws, 3, "an atomic operation has one size only")
	require.Equal(t, 8, ws[2].Size)

	for _, one := range [][]string{{"--serve"}, {"--connect", "127.0.0.1:1"}} {
		_, err = parsed(append(one, "--metrics", "127.0.0.1:0"))
		require.NoError(t, err, "there is no second process")
	}
	_, err = parsed([]string{"--suite", "standard", "--cc", ""})
	require.NoError(t, err, "the cases have the congestion control that the flag says")
	for _, args := range [][]string{{"--suite", "standard"}, {"--serve"}} {
		_, err = parsed(append(args, "--baseline", "http"))
		require.NoError(t, err, "nothing is measured against the baseline")
	}

	for _, args := range [][]string{
		{"--metrics", "127.0.0.1:0"},
		{"--serve", "--connect", "x"},
		{"--suite", "other"},
		{"--suite", "standard", "--case", "none"},
		{"--suite", "standard", "--case", "copies,none"},
		{"--case", "copies"},
		{"--suite", "standard", "--case", "copies", "--scrape", "1s"},
		{"--suite", "standard", "--scrape", "-1s"},
		{"--scrape", "1s"},
		{"--baseline", "iwarp"},
		{"--baseline", "http"}, // write is one of the operations
		{"--op", "pingpong", "--baseline", "reqresp"},
		{"--op", "read", "--depth", "5000", "--size", "64", "--baseline", "reqresp"},
		{"--suite", "standard", "--html", "page.html", "--baseline", "reqresp"}, // the report would plot writes
		{"--suite", "standard", "--network", "sctp+udp"},
		{"--network", "sctp+udp", "--auth", "tls"},
		{"--network", "sctp+udp", "--markers"},
		{"--network", "sctp+udp", "--crc=false"},
		{"--serve", "--suite", "standard"},
		{"--serve", "--html", "page.html"},
		{"--serve", "--cc", "cubic"},
		{"--once"},
		{"--addr", "127.0.0.1:0", "--connect", "127.0.0.1:1"},
		{"--solicit", "1048576", "--op", "write,send"},
		{"--pairs", "0"},
		{"--op", "fly"},
		{"--op", "send", "--duplex"},
		{"--depth", "1000000"},
		{"--op", "read", "--size", "1M", "--depth", "2048"},
		{"--nonsense"},
		{"rest"},
		{"-suite", "standard"},
		{"-c", "127.0.0.1:1"},
	} {
		err := cli.Run(t.Context(), Command(), args, cli.Streams{Out: t.Output(), Err: t.Output()})
		require.ErrorAs(t, err, new(cli.UsageError), "%q is refused", args)
	}
}
