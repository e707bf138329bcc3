package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/examples/internal/program"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/host"
)

func TestSolicit(t *testing.T) {
	for window, mdts := range map[string]string{"4MiB": "8", "16KiB": "2"} {
		v := serve(t, "-backing", "mem:16MiB", "-solicit", window)
		out := ok(t, "id", v.addr)
		require.Contains(t, out, "ioccsz    : 4\n", "nothing is in capsules")
		require.Contains(t, out, "mdts      : "+mdts+"\n", "the largest Read fits in the window")
		require.Contains(t, ok(t, "verify", v.addr, "-time", "100ms", "-queues", "2", "-depth", "16"), ", 0 errors")
	}
}

func TestSRQ(t *testing.T) {
	v := serve(t, "-backing", "mem:16MiB", "-srq", "256", "-ord", "1", "-icd", "0", "-crc=false")
	require.Contains(t, ok(t, "verify", v.addr, "-time", "100ms", "-queues", "2", "-depth", "16", "-crc=false"), ", 0 errors")
}

func TestTwoListeners(t *testing.T) {
	v := serve(t, "-listen", "127.0.0.1:0", "-backing", "mem:1MiB")
	first := v.addr
	require.Contains(t, v.line(), "listening on ")
	require.Contains(t, ok(t, "list", first), "1MiB")
}

func TestBadCommandLines(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "no", "where")
	unmade := filepath.Join(t.TempDir(), "disk.img")
	const addr = "127.0.0.1:1"
	for _, c := range []struct {
		want string
		args []string
	}{
		{"no command", nil},
		{`no such command: "mount"`, []string{"mount"}},
		{"serve: there must be a -backing", []string{"serve"}},
		{`serve: unexpected argument "mem:1MiB"`, []string{"serve", "mem:1MiB"}},
		{"serve: flag provided but not defined: -x", []string{"serve", "-x"}},
		{`invalid value "4XB" for flag -solicit: not a size`, []string{"serve", "-solicit", "4XB"}},
		{`invalid value "-1" for flag -solicit`, []string{"serve", "-solicit", "-1"}},
		{"-solicit is 8KiB, and less than 16KiB", []string{"serve", "-backing", "mem:1MiB", "-solicit", "8KiB"}},
		{`backend: "tape:1"`, []string{"serve", "-backing", "tape:1"}},
		{`backend: "mem:1MB": "1MB" is no size`, []string{"serve", "-backing", "file:" + unmade + ",size=1MiB", "-backing", "mem:1MB"}},
		{"-srq is -1", []string{"serve", "-backing", "mem:1MiB", "-srq", "-1"}},
		{"-max-queues is 0", []string{"serve", "-backing", "mem:1MiB", "-max-queues", "0"}},
		{"-ord is 0", []string{"serve", "-backing", "mem:1MiB", "-ord", "0"}},
		{"-icd is 100, and not a multiple of 16", []string{"serve", "-backing", "mem:1MiB", "-icd", "100"}},
		{"-icd is 32768, and not", []string{"serve", "-backing", "mem:1MiB", "-icd", "32768"}},
		{"-stats is -1s", []string{"serve", "-backing", "mem:1MiB", "-stats", "-1s"}},
		{"-nqn: ", []string{"serve", "-backing", "mem:1MiB", "-nqn", "a\x00"}},
		{"-allow: ", []string{"serve", "-backing", "mem:1MiB", "-allow", "a\nb"}},
		{"-tls-ca and -tls-key of a target need -tls-cert", []string{"serve", "-backing", "mem:1MiB", "-tls-ca", "x"}},
		{"-tls-cert and -tls-key go together", []string{"serve", "-backing", "mem:1MiB", "-tls-cert", "x"}},
		{"discover: ADDR is missing", []string{"discover"}},
		{`unexpected argument "b"`, []string{"read", "a", "b"}},
		{"-hostnqn and -hostid go together", []string{"list", addr, "-hostnqn", "nqn.x"}},
		{`-hostid: "x" is no UUID`, []string{"list", addr, "-hostnqn", "nqn.x", "-hostid", "x"}},
		{"-queues is 65", []string{"list", addr, "-queues", "65"}},
		{"-depth is 0", []string{"list", "-depth", "0", addr}},
		{"-timeout is 0s", []string{"list", addr, "-timeout", "0s"}},
		{`-page is "x", and not smart, error`, []string{"log", addr, "-page", "x"}},
		{"-tls-cert and -tls-key of a host need -tls-ca", []string{"id", addr, "-tls-cert", "x"}},
	} {
		_, err := nvme(t, nil, c.args...)
		require.ErrorContains(t, err, c.want, "%q", c.args)
		require.True(t, errors.As(err, new(program.UsageError)), "%q", c.args)
	}
	require.NoFileExists(t, unmade, "of a command line that is wrong")
	for want, args := range map[string][]string{
		"serve: backend: ":        {"serve", "-backing", "file:" + nowhere},
		"-listen nowhere.invalid": {"serve", "-backing", "mem:1MiB", "-listen", "nowhere.invalid"},
		"-tls-cert " + nowhere:    {"serve", "-backing", "mem:1MiB", "-tls-cert", nowhere, "-tls-key", nowhere},
		"refused":                 {"discover", addr},
		"-tls-ca: ":               {"discover", addr, "-tls-ca", nowhere},
		"write: open " + nowhere:  {"write", addr, "-file", nowhere},
	} {
		_, err := nvme(t, nil, args...)
		require.ErrorContains(t, err, want, "%q", args)
		require.False(t, errors.As(err, new(program.UsageError)), "%q", args)
	}
}

// TestBadRanges: they are refused before any data moves.
func TestBadRanges(t *testing.T) {
	v := serve(t, "-backing", "mem:1MiB")
	for want, args := range map[string][]string{
		"there is no namespace 2":                         {"read", "-nsid", "2"},
		"-offset 100 is not a multiple":                   {"read", "-offset", "100"},
		"-length 100 is not a multiple":                   {"write", "-length", "100"},
		"-offset 1048576 and -length 4096 are not within": {"read", "-offset", "1MiB", "-length", "4KiB"},
		"the input ends after 8192 octets":                {"write", "-length", "12KiB"},
		"open ":                                           {"read", "-file", filepath.Join(t.TempDir(), "no", "where")},
		"-jobs is 0":                                      {"verify", "-jobs", "0"},
		"-time is -1s":                                    {"verify", "-time", "-1s"},
		"-size 100 is not a multiple":                     {"verify", "-size", "100"},
		"-size 2097152 are not within":                    {"verify", "-size", "2MiB"},
		"1 blocks of 4096 octets are less than one":       {"verify", "-size", "4KiB"},
	} {
		_, err := nvme(t, random(8192), append(args, v.addr)...)
		require.ErrorContains(t, err, want, "%q", args)
	}
	_, err := nvme(t, random(5000), "write", v.addr)
	require.ErrorContains(t, err, "the input has 5000 octets, which is not a multiple of the block size 4096")
}

func TestDefaultNQN(t *testing.T) {
	machine, err := os.Hostname()
	require.NoError(t, err)
	f := serving{listen: list{"10.0.0.1", "[::1]:5"}}
	require.NoError(t, f.complete())
	require.Equal(t, list{"10.0.0.1:4420", "[::1]:5"}, f.listen)
	require.Equal(t, "nqn.2026-11.io.github.goiwarp:"+machine+".4420", f.nqn)
}

func TestHelp(t *testing.T) {
	out := ok(t, "help")
	for _, c := range commands {
		require.Contains(t, out, c.name)
		require.Contains(t, ok(t, c.name, "-h"), c.what)
	}
	require.Contains(t, ok(t, "verify", "-h"), "-seed")
}

func TestWithPort(t *testing.T) {
	for addr, want := range map[string]string{"10.0.0.1": "10.0.0.1:4420", "disk": "disk:4420", "::1": "[::1]:4420", "fe80::1%eth0": "[fe80::1%eth0]:4420", "[::1]": "[::1]:4420", "[::1]:5": "[::1]:5", ":7": ":7"} {
		require.Equal(t, want, withPort(addr))
	}
}

// TestOnlyQuotesNames: the target chooses the names, and the error goes to a terminal.
func TestOnlyQuotesNames(t *testing.T) {
	_, err := only([]host.Entry{
		{TRTYPE: capsule.TransportRDMA, SUBTYPE: capsule.SubtypeNVM, SubNQN: "nqn.2026-11.org.example:\x1b]0;title\a"},
		{TRTYPE: capsule.TransportRDMA, SUBTYPE: capsule.SubtypeNVM, SubNQN: testHost},
	})
	require.EqualError(t, err, `2 NVM subsystems (nqn.2026-11.org.example:\x1b]0;title\a, `+testHost+`)`)
}

// TestOnlyCountsWhatIsOfferedOverRDMA: this host cannot use the other transports that a target, such as SPDK's, lists in
// the same log.
func TestOnlyCountsWhatIsOfferedOverRDMA(t *testing.T) {
	const tcp = 3
	entries := []host.Entry{
		{TRTYPE: tcp, SUBTYPE: capsule.SubtypeNVM, SubNQN: "nqn.2026-11.org.example:other"},
		{TRTYPE: tcp, SUBTYPE: capsule.SubtypeNVM, SubNQN: testHost},
		{TRTYPE: capsule.TransportRDMA, SUBTYPE: capsule.SubtypeNVM, SubNQN: testHost},
	}
	name, err := only(entries)
	require.NoError(t, err)
	require.Equal(t, testHost, name)
	_, err = only(entries[:1])
	require.EqualError(t, err, "no NVM subsystem to this host over RDMA")
}
