package matrix

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
)

// A process is a program of either side.
type process struct {
	t    *T
	name string
	cmd  *exec.Cmd
	out  output // standard output
	errs output // standard error
	done chan struct{}
	err  error // how it ended, once done is closed
}

// An output collects the output of a program.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// siw starts a program on siw's side.
func (t *T) siw(name string, args ...string) *process {
	return t.start(exec.Command("ip", append([]string{"netns", "exec", peerSpace, name}, args...)...), name)
}

// ours starts a program on our side.
func (t *T) ours(name string, args ...string) *process {
	return t.start(exec.Command(name, args...), name)
}

// start starts a program that ends with the case, and whose output is kept in the case's
// folder.
func (t *T) start(cmd *exec.Cmd, name string) *process {
	p := &process{t: t, name: filepath.Base(name), cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.out, &p.errs
	require.NoError(t, cmd.Start(), "start %s", name)
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(p.discard)
	return p
}

// discard ends the program if it still runs, and keeps its output.
func (p *process) discard() {
	p.kill()
	f, err := os.OpenFile(filepath.Join(p.t.Dir, p.name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		p.t.Errorf("%v", err)
		return
	}
	how := "still runs"
	if !p.running() {
		how = fmt.Sprint(p.err)
	}
	fmt.Fprintf(f, "# %s: %s\n%s%s", strings.Join(p.cmd.Args, " "), how, p.out.String(), p.errs.String())
	_ = f.Close() // only a log
}

// kill ends the program as kill -9 does and waits for its end.
func (p *process) kill() {
	select {
	case <-p.done:
		return
	default:
	}
	_ = p.cmd.Process.Kill() // fails if it has just ended
	if !p.t.endsWithin(p.done, 10*time.Second) {
		p.t.Errorf("%s cannot be killed: the kernel holds it", p.name)
	}
}

// wait waits for the program's end.
func (p *process) wait() error {
	select {
	case <-p.done:
		return p.err
	case <-p.t.Ctx.Done():
		p.locate()
		return fmt.Errorf("%s still runs", p.name)
	}
}

// locate writes to the case's folder what the kernel reports about a program that does not end: its descriptors, and the system
// call in which each thread waits.
func (p *process) locate() {
	var b bytes.Buffer
	proc := fmt.Sprintf("/proc/%d", p.cmd.Process.Pid)
	fds, _ := filepath.Glob(proc + "/fd/*")
	for _, fd := range fds {
		to, _ := os.Readlink(fd) // it may be closed already
		fmt.Fprintf(&b, "%s -> %s\n", fd, to)
	}
	about, _ := filepath.Glob(proc + "/task/*/*")
	for _, file := range about {
		switch filepath.Base(file) {
		case "comm", "syscall", "stack":
			text, err := os.ReadFile(file)
			fmt.Fprintf(&b, "%s: %v\n%s\n", file, err, text)
		}
	}
	if err := os.WriteFile(filepath.Join(p.t.Dir, p.name+".where"), b.Bytes(), 0o644); err != nil {
		p.t.Errorf("%v", err)
	}
}

// succeed waits for the program's end and expects success.
func (p *process) succeed() {
	require.NoError(p.t, p.wait(), "%s succeeds; it said %q", p.name, p.lastWords())
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// lastWords returns the end of the program's output, followed by that of its standard error.
func (p *process) lastWords() string {
	lines := strings.Split(strings.TrimSpace(p.out.String()+"\n"+p.errs.String()), "\n")
	s := strings.Join(lines[max(0, len(lines)-3):], " | ")
	return s[max(0, len(s)-300):]
}

// listening waits until the server on the given side listens on basePort.
func (p *process) listening(peer bool) { p.listeningAt(peer, basePort) }

// listeningAt is listening for another port.
func (p *process) listeningAt(peer bool, port int) {
	args := []string{"ss", "-Htln", fmt.Sprintf("sport = :%d", port)}
	if peer {
		args = append([]string{"ip", "netns", "exec", peerSpace}, args...)
	}
	require.True(p.t, p.t.eventually(func() bool {
		out, err := exec.Command(args[0], args[1:]...).Output()
		return err == nil && len(bytes.TrimSpace(out)) > 0 || !p.running()
	}), "%s listens", p.name)
	require.True(p.t, p.running(), "%s ended at once; it said %q", p.name, p.lastWords())
}

// eventually calls try until it succeeds or the case has reached its limit.
func (t *T) eventually(try func() bool) bool {
	for t.Ctx.Err() == nil {
		if try() {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}
