package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
)

// childEnv makes the test binary run as iwarp itself: demo and perf start their own executable.
const childEnv = "IWARP_TEST_BE_IWARP"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// beIwarp makes children of the test run as iwarp. A race detector that has found nothing would make them sleep for a second.
func beIwarp(t *testing.T) {
	t.Setenv(childEnv, "1")
	t.Setenv("GORACE", "atexit_sleep_ms=0")
}

// iwarpMain runs a command line, and returns the exit status.
func iwarpMain(t *testing.T, args []string, out, errs io.Writer) int {
	t.Helper()
	return cli.Main(t.Context(), rootCommand(), args, cli.Streams{Out: out, Err: errs})
}

// objects returns the JSON values of an output that contains nothing else.
func objects(t *testing.T, out string) (all []map[string]any) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var o map[string]any
		err := d.Decode(&o)
		if err == io.EOF {
			return all
		}
		require.NoError(t, err, out)
		all = append(all, o)
	}
}

// TestWrongCalls: each is one line that says what to do, and status 2.
func TestWrongCalls(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"pong", `iwarp: unknown command "pong": is "iwarp ping" meant?`},
		{"zzz", `iwarp: unknown command "zzz": iwarp --help lists the commands`},
		{"--verson", "iwarp: unknown flag --verson: is --version meant?"},
		{"ping", "iwarp ping: one of -s and -c is needed, or the name of a server"},
		{"ping -c", "iwarp ping: -c needs -a ADDRESS"},
		{"ping -c -a ::1 -P", "iwarp ping: -P is for servers, and cannot be traced"},
		{"ping -s -S 65536", "iwarp ping: -S must be from 23 to 65535"},
		{"ping -s -p x", `iwarp ping: -p, --port "x": want a whole number`},
		{"ping -s -p 70000", "iwarp ping: -p 70000 is no port: want 0 to 65535"},
		{"ping -s now", `iwarp ping: unexpected argument "now": HOST stands for -c -a HOST`},
		{"ping a b", `iwarp ping: unexpected argument "b"; usage: iwarp ping [HOST[:PORT]] [flags]`},
		{"ping 192.0.2.1:70000", `iwarp ping: "70000" of 192.0.2.1:70000 is no port: want 0 to 65535`},
		{"ping 192.0.2.1:7174 -p 7174", `iwarp ping: 192.0.2.1:7174 has a port already: leave -p out`},
		{"ping -s -a", "iwarp ping: -a, --addr needs a value: ADDRESS of the server; with -s: where it listens (default: everywhere)"},
		{"ping -x", "iwarp ping: unknown flag -x: iwarp ping --help lists the flags"},
		{"ping -trace f -s", "iwarp ping: -trace is written --trace"},
		{"ping -network=tcp -s", "iwarp ping: -network is written --network"},
		{"perf -suite standard", "iwarp perf: -suite is written --suite"},
		{"perf --siute standard", "iwarp perf: unknown flag --siute: is --size or --suite meant?"},
		{"perf -op write -size 4K", "iwarp perf: -op is written --op"},
		{"perf -crc=false", "iwarp perf: -crc is written --crc"},
		{"perf -c 127.0.0.1:7175", "iwarp perf: -c is written --connect ADDRESS"},
		{"perf -s -a 127.0.0.1:7175", "iwarp perf: -s is written --serve"},
		{"perf -help", "iwarp perf: -help is written --help"},
		{"perf comit", `iwarp perf: unknown command "comit": is "iwarp perf commit" meant?`},
		{"perf --suite other", `iwarp perf: --suite "other": there is only standard`},
		{"perf --span 5", `iwarp perf: --span "5": want a time such as 50us, 100ms or 2s`},
		{"perf --crc=perhaps", `iwarp perf: --crc "perhaps": want true or false`},
		{"perf --size 1T", `iwarp perf: --size "1T": "1T" is no size: want 1 to 1G, as in 64, 4K or 1M`},
		{"perf --depth 0", "iwarp perf: --depth and --conns must be at least 1"},
		{"perf --conns -1", "iwarp perf: --depth and --conns must be at least 1"},
		{"perf --addr :7175", "iwarp perf: --addr is for --serve"},
		{"perf --once --connect 127.0.0.1:1", "iwarp perf: --once is for --serve"},
		{"perf --op write --solicit 65536", "iwarp perf: --solicit is for the Reads of --op read"},
		{"perf --ulpdu -1", "iwarp perf: a ULPDU of -1 octets and polling for 0s cannot be: they are not negative"},
		{"perf --poll -1s", "iwarp perf: a ULPDU of 0 octets and polling for -1s cannot be: they are not negative"},
		{"perf connect -n 16", "iwarp perf connect: -n is written --conns"},
		{"perf rma -run percore", "iwarp perf rma: -run is written --run"},
		{"perf commit -dir /tmp", "iwarp perf commit: -dir is written --dir"},
		{"perf incast -svg x", "iwarp perf incast: -svg is written --svg"},
		{"perf nvme -pairs 1", "iwarp perf nvme: -pairs is written --pairs"},
		{"perf streams -time 1s", "iwarp perf streams: -time is written --time"},
		{"attack -addr 127.0.0.1:1", "iwarp attack: -addr is written --addr"},
		{"serve", "iwarp serve: an argument is missing; usage: iwarp serve DIRECTORY [flags]"},
		{"get a b c", `iwarp get: unexpected argument "c"; usage: iwarp get NAME [FILE] [flags]`},
		{"get a -", "iwarp get: - is neither the standard input nor the output here: a file of that name is ./-"},
		{"put - a", "iwarp put: - is neither the standard input nor the output here: a file of that name is ./-"},
		{"put --loss -1 f", `iwarp put: --loss "-1": want 0 to 100`},
		{"demo --loss NaN", `iwarp demo: --loss "NaN": want 0 to 100`},
		{"serve --loss 101 d", `iwarp serve: --loss "101": want 0 to 100`},
		{"put --loss 1 f", "iwarp put: --loss is for --network sctp+udp"},
		{"serve --network sctp --loss 1 d", "iwarp serve: --loss is for --network sctp+udp"},
		{"serve --network sctp --nocrc d", "iwarp serve: --nocrc is for tcp"},
		{"put --network sctp+udp --nocrc f", "iwarp put: --nocrc is for tcp"},
		{"demo --network ipx", `iwarp demo: --network "ipx": tcp, sctp and sctp+udp are known`},
		{"put --network ipx f", `iwarp put: --network "ipx": tcp, sctp and sctp+udp are known`},
		{"serve --network ipx d", `iwarp serve: --network "ipx": tcp, sctp and sctp+udp are known`},
		{"put --adr x f", "iwarp put: unknown flag --adr: is --addr meant?"},
		{"demo --size 1PiB", `iwarp demo: --size "1PiB": not a size such as 100000, 64MiB or 5GiB`},
		{"top a b", `iwarp top: unexpected argument "b"; usage: iwarp top [ADDRESS] [flags]`},
		{"top alpha", `iwarp top: "alpha" has no port: want host:port, as in 127.0.0.1:9464`},
		{"top --interval 1ms", "iwarp top: --interval 1ms: want 200ms or more"},
		{"top --once --sort speed", `iwarp top: --sort "speed": want one of rate, remote, local, peer, path, state, received, sent, received_messages, sent_messages, send_queue, recv_queue, rtt, retransmits, waits`},
		{"top --count 3", "iwarp top: --count is for --json without --once"},
		{"top --json=1 --count -3", "iwarp top: --count -3: want a number of lines, or 0"},
		{"top", "iwarp top: no terminal to read keys from and to draw on: --once prints the page as text, --json as JSON"},
		{"version now", `iwarp version: unexpected argument "now"; usage: iwarp version [flags]`},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, cli.Misused, iwarpMain(t, strings.Fields(c.args), &out, &errs), "exit status of %q", c.args)
		require.Equal(t, c.want+"\n", errs.String(), "%q", c.args)
		require.Empty(t, out.String(), "%q", c.args)
	}
}

func TestNoCommand(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, cli.Misused, iwarpMain(t, nil, &out, &errs))
	require.Empty(t, out.String())
	require.Contains(t, errs.String(), "Find faults:")
	require.True(t, strings.HasSuffix(errs.String(), "\niwarp: a command is missing\n"))
}

// TestHelp: each command is in the help of its parent, and has a help of its own, on the standard output.
func TestHelp(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string
	}{
		{"help", []string{"demo", "serve", "put", "get", "ping", "top", "info", "perf", "attack", "version", "completion", "exit-status", "Exit status: 0 done"}},
		{"--help", []string{"Usage:"}},
		{"help exit-status", []string{"130  interrupted"}},
		{"help perf", []string{"commit", "connect", "incast", "rma", "nvme", "streams", "--suite", "iwarp perf --serve"}},
		{"perf --help", []string{"commit", "--connect ADDRESS"}},
		{"perf commit -h", []string{"--dir DIRECTORY"}},
		{"perf connect -h", []string{"--conns numbers"}},
		{"top -h", []string{"ADDRESS is HOST:PORT or a URL", "--once", "-n, --count N", "NO_COLOR"}},
		{"ping -h", []string{"-a, --addr ADDRESS", "-C, --count", "-d, --debug", "rping", "port of TCP"}},
		{"completion bash", []string{"iwarp"}},
	} {
		var out, errs bytes.Buffer
		require.Zero(t, iwarpMain(t, strings.Fields(c.args), &out, &errs), errs.String())
		require.Empty(t, errs.String())
		for _, w := range c.want {
			require.Contains(t, out.String(), w, "%q", c.args)
		}
	}
	var out bytes.Buffer
	require.Zero(t, iwarpMain(t, []string{"perf", "commit", "--help"}, &out, io.Discard))
	require.NotContains(t, out.String(), "--slots", "what is for its own processes is not in the help")
}

// TestPerfHasNoFlagsOfOneLetter, since those of ping mean something else.
func TestPerfHasNoFlagsOfOneLetter(t *testing.T) {
	perf := perfCommand()
	for _, cmd := range append(perf.Commands(), perf) {
		require.NotRegexp(t, `(?m)^ +-[a-gi-zA-Z],`, cmd.LocalFlags().FlagUsages(), cmd.Name())
	}
}
