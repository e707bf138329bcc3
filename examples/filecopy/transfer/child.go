package transfer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	startTime = 10 * time.Second // for the server to print its address
	stopTime  = 5 * time.Second  // for the server to end when asked
)

// A child is a server in a separate process.
type child struct {
	cmd    *exec.Cmd
	in     io.Closer // the other end of its standard input, whose end ends the server, for example when this process is killed
	cancel context.CancelFunc
	addr   string
	log    bytes.Buffer // its log; to be read only after wait
}

// childEnv tells a server that startServer has started it.
const childEnv = "IWARP_TRANSFER_CHILD"

// startServer runs this program's serve command on a free port of loopback, and
// returns when it listens.
func startServer(ctx context.Context, dir string, k Link) (*child, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{
		"serve", "--network", k.Network, "--addr", "127.0.0.1:0",
		fmt.Sprintf("--nocrc=%t", k.NoCRC), fmt.Sprintf("--loss=%g", k.Loss), dir,
	}
	s := &child{}
	ctx, s.cancel = context.WithCancel(ctx)
	s.cmd = exec.CommandContext(ctx, exe, args...)
	s.cmd.Cancel = s.interrupt
	s.cmd.WaitDelay = stopTime
	s.cmd.Stderr = &s.log
	s.cmd.Env = append(os.Environ(), childEnv+"=1")
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		s.in, err = s.cmd.StdinPipe()
	}
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		s.cancel()
		return nil, err
	}
	// A server that does not start in time is stopped, which ends its output.
	late := time.AfterFunc(startTime, s.cancel)
	line, err := bufio.NewReader(out).ReadString('\n')
	late.Stop()
	if err != nil {
		return nil, s.explain(fmt.Errorf("the server did not start: %w", err))
	}
	s.addr = strings.TrimSpace(line)
	return s, nil
}

func (s *child) pid() int { return s.cmd.Process.Pid }

// interrupt asks the process to end; on systems where this is not possible it kills the process.
func (s *child) interrupt() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err == nil || errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return s.cmd.Process.Kill()
}

// stop ends the process and waits for it. It may be called again.
func (s *child) stop() {
	s.cancel()
	_ = s.cmd.Wait()
}

// explain stops the server and adds its log to err.
func (s *child) explain(err error) error {
	s.stop()
	if log := strings.TrimSpace(s.log.String()); log != "" {
		return fmt.Errorf("%w\nthe server's log:\n%s", err, log)
	}
	return err
}
