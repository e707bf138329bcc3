package peer

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A Child is the other end, in a process of its own.
type Child struct {
	Addr string // where it listens

	cmd    *exec.Cmd
	input  io.WriteCloser
	secret string // identifies this process to ServeControl: it is the first line of the child's stdin
}

// Start runs this program once more with args, and waits until it has announced that it
// listens.
func Start(ctx context.Context, stderr io.Writer, args ...string) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	k := &Child{cmd: exec.CommandContext(ctx, self, args...), secret: rand.Text()}
	k.cmd.Stderr = stderr
	k.cmd.WaitDelay = 5 * time.Second
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if k.input, err = k.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := k.cmd.Start(); err != nil {
		return nil, err
	}
	defer k.within(Timeout)()
	_, _ = io.WriteString(k.input, k.secret+"\n") // a child that has ended prints nothing
	line, rerr := bufio.NewReader(out).ReadString('\n')
	var ok bool
	if k.Addr, ok = strings.CutPrefix(strings.TrimSpace(line), listening); !ok {
		return nil, fmt.Errorf("the server did not start: %q: %w", line, errors.Join(rerr, k.cmd.Wait()))
	}
	return k, nil
}

// listening is what a child prints before its address.
const listening = "listening "

// Announce tells the parent process where this one listens.
func Announce(stdout io.Writer, addr net.Addr) {
	fmt.Fprintf(stdout, "%s%v\n", listening, addr)
}

// Left returns a context that ends when the parent process, which holds the other end of
// stdin, has ended or calls Stop.
func Left(ctx context.Context, stdin io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	return ctx, cancel
}

// Stop closes the child's stdin and waits until it has ended.
func (k *Child) Stop() error {
	_ = k.input.Close() // what was written has been read, or is useless
	defer k.within(Timeout)()
	return k.cmd.Wait()
}

// Kill ends the child at once.
func (k *Child) Kill() error {
	_ = k.cmd.Process.Kill() // it may have ended
	return k.cmd.Wait()
}

// within kills the child unless over is called before d has passed.
func (k *Child) within(d time.Duration) (over func()) {
	t := time.AfterFunc(d, func() { _ = k.cmd.Process.Kill() }) // it may have ended
	return func() { t.Stop() }
}
