package matrix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rsocket"
)

// Where /init has put our programs.
const (
	rcopyProgram  = "/tmp/rcopy"
	bridgeProgram = "/tmp/bridge"
)

func streamProgramCases() []Case {
	var all []Case
	// librdmacm's rcopy cannot send an empty file, since it maps the file.
	empty := Case{Name: "rcopy/0", Role: Initiator}
	all = append(all, crcOnOff(empty, func(t *T, cfg *rsocket.Config) { t.rcopy(cfg, 0) })...)
	for _, size := range []int{1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 64 << 20} {
		name := "rcopy/" + strconv.Itoa(size)
		all = append(all, inBothRoles(Case{Name: name, Core: size == 64<<10+1}, func(t *T, cfg *rsocket.Config) { t.rcopy(cfg, size) })...)
	}
	for _, r := range []struct {
		name string
		args []string
		core bool
	}{
		{"there", []string{"-n", "50M"}, true},
		{"back", []string{"-n", "50M", "-R"}, true},
		{"parallel", []string{"-n", "50M", "-P", "4"}, false},
		{"both-ways", []string{"-t", "3", "--bidir"}, false},
	} {
		c := Case{Name: "iperf3/" + r.name, Role: Responder, Core: r.core, Limit: 3 * time.Minute}
		all = append(all, crcOnOff(c, func(t *T, cfg *rsocket.Config) { t.iperf3(cfg, r.args) })...)
	}
	return append(all, crcOnOff(Case{Name: "echo/connections", Role: Initiator, Core: true}, (*T).echo)...)
}

// flagsOf returns the flags of our programs.
func flagsOf(cfg *rsocket.Config) []string {
	if cfg.QP.MPA.NoCRC {
		return []string{"-nocrc"}
	}
	return nil
}

// rcopy copies a file with librdmacm's rcopy: the side that initiates sends it.
func (t *T) rcopy(cfg *rsocket.Config, size int) {
	dir, err := os.MkdirTemp("/tmp", "rcopy")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	octets := make([]byte, size)
	for i := range octets {
		octets[i] = byte(rand.Uint32())
	}
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	require.NoError(t, os.WriteFile(from, octets, 0o600))
	var server *process
	if t.Role == Responder {
		server = t.ours(rcopyProgram, slices.Concat([]string{"serve"}, flagsOf(cfg), []string{"-listen", OurIP + ":7427", dir})...)
		server.listeningAt(false, 7427)
		t.siw("rcopy", from, OurIP+":to").succeed()
	} else {
		server = t.siw("rcopy")
		server.listeningAt(true, 7427)
		t.ours(rcopyProgram, slices.Concat([]string{"put"}, flagsOf(cfg), []string{from, PeerIP, to})...).succeed()
	}
	require.True(t, server.running(), "the server goes on; it said %q", server.lastWords())
	got, err := os.ReadFile(to)
	require.NoError(t, err)
	require.Equal(t, octets, got, "the copy")
}

// iperf3 measures with the stock iperf3, through librspreload and our bridge, to a stock server on TCP.
func (t *T) iperf3(cfg *rsocket.Config, args []string) {
	const port = "5201"
	server := t.ours("iperf3", "-s", "-B", "127.0.0.1", "-p", port)
	server.listeningAt(false, 5201)
	bridge := t.ours(bridgeProgram, append(flagsOf(cfg), "in", OurIP+":"+port, "127.0.0.1:"+port)...)
	bridge.says("listening")
	client := t.siwWith([]string{preload}, "iperf3", append([]string{"-c", OurIP, "-p", port}, args...)...)
	client.succeed()
	require.Contains(t, client.out.String(), "iperf Done.")
	require.True(t, bridge.running(), "the bridge goes on; it said %q", bridge.lastWords())
	require.NoError(t, bridge.cmd.Process.Signal(syscall.SIGTERM))
	bridge.succeed()
	for line := range strings.Lines(client.out.String()) {
		if strings.Contains(line, "receiver") || strings.Contains(line, "sender") {
			t.figure("%s", strings.TrimSpace(line))
		}
	}
}

// echo connects plain TCP clients through our bridge to a server of stream sockets under librspreload.
func (t *T) echo(cfg *rsocket.Config) {
	const clients, port = 4, "7700"
	server := t.siwWith([]string{preload}, "echoserver", port)
	server.listeningAt(true, 7700)
	bridge := t.ours(bridgeProgram, append(flagsOf(cfg), "out", "127.0.0.1:"+port, PeerIP+":"+port)...)
	bridge.says("listening")
	for _, size := range []int{1, 64<<10 + 1, 4 << 20} {
		ended := make(chan error, clients)
		for range clients {
			go func() { ended <- echoes(t.Ctx, "127.0.0.1:"+port, size) }()
		}
		for range clients {
			require.NoError(t, <-ended, "%d octets; the server said %q, the bridge %q", size, server.lastWords(), bridge.lastWords())
		}
	}
	require.True(t, server.running(), "the server goes on; it said %q", server.lastWords())
	require.True(t, bridge.running(), "the bridge goes on; it said %q", bridge.lastWords())
	require.NoError(t, bridge.cmd.Process.Signal(syscall.SIGTERM))
	bridge.succeed()
}

// echoes sends size octets over TCP, closes its sending half, and compares what it then reads to the end.
func echoes(ctx context.Context, addr string, size int) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	octets := make([]byte, size)
	for i := range octets {
		octets[i] = byte(rand.Uint32())
	}
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(octets)
		sent <- errors.Join(err, c.(*net.TCPConn).CloseWrite())
	}()
	back, err := io.ReadAll(c)
	if err := errors.Join(err, <-sent); err != nil {
		return err
	}
	if !bytes.Equal(octets, back) {
		return fmt.Errorf("the %d octets that came back are not the %d that were sent", len(back), size)
	}
	return nil
}
