package perf

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A child is a server in a process of its own.
type child struct {
	cmd *exec.Cmd
	c   net.Conn
}

// startChild starts this program once more, as a server on the loopback that goes by
// its one client, and connects to it.
func startChild(ctx context.Context, stderr io.Writer, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{"perf", "-s", "-a", "127.0.0.1:0", "-once"}, args...)...)
	cmd.Stderr = stderr
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, rerr := bufio.NewReader(out).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), listening)
	if !ok {
		return nil, fmt.Errorf("the server did not start: %q: %w", line, errors.Join(rerr, cmd.Wait()))
	}
	c, err := net.DialTimeout("tcp", addr, dialTimeout)
	if err != nil {
		_ = cmd.Process.Kill() // it has no client to go by
		return nil, errors.Join(err, cmd.Wait())
	}
	return &child{cmd: cmd, c: c}, nil
}

// listening is what a server prints before its address.
const listening = "listening "

// stop ends the control connection, by which the server goes, and waits for it.
func (k *child) stop() error {
	_ = k.c.Close() // nothing is lost with it
	return k.cmd.Wait()
}
