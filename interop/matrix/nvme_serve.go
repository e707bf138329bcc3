package matrix

import (
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
)

// nvmeProgram is our program, built from examples/nvme/cmd.
const nvmeProgram = "/tmp/nvmego"

// nvmeOurs starts our program on our side.
func (t *T) nvmeOurs(args ...string) *process {
	return t.start(exec.Command("ip", append([]string{"netns", "exec", ourSpace, nvmeProgram}, args...)...), nvmeProgram)
}

// nvmeOursSays runs our program, which must succeed, and returns its output.
func (t *T) nvmeOursSays(args ...string) string {
	p := t.nvmeOurs(args...)
	p.succeed()
	return p.out.String()
}

// An nvmeTarget is a process of our target.
type nvmeTarget struct {
	*process
	in   io.WriteCloser
	args []string
}

// serveNVMe starts our target, and waits until it listens. Without -listen among the arguments it listens at OurIP.
func (t *T) serveNVMe(crc bool, args ...string) *nvmeTarget {
	all := []string{"netns", "exec", ourSpace, nvmeProgram, "serve", "-nqn", nvmeSubsystem, "-control"}
	if !strings.Contains(strings.Join(args, " "), "-listen") {
		all = append(all, "-listen", OurIP+":"+nvmePort)
	}
	if !crc {
		all = append(all, "-crc=false")
	}
	return t.startTarget(append(all, args...))
}

func (t *T) startTarget(args []string) *nvmeTarget {
	cmd := exec.Command("ip", args...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	n := &nvmeTarget{process: t.start(cmd, "target"), in: in, args: args}
	n.says("listening on ")
	return n
}

// says waits until a running program has printed a text.
func (p *process) says(what string) {
	t := p.t
	require.True(t, t.within(30*time.Second, func() bool { return !p.running() || strings.Contains(p.out.String(), what) }), "%s says %q; it said %q", p.name, what, p.lastWords())
	require.True(t, p.running(), "%s has ended; it said %q", p.name, p.lastWords())
}

// again starts the target again, with the same arguments.
func (n *nvmeTarget) again() *nvmeTarget { return n.t.startTarget(n.args) }

// stop ends the target gracefully.
func (n *nvmeTarget) stop() {
	require.NoError(n.t, n.cmd.Process.Signal(syscall.SIGTERM), "the target runs")
	require.True(n.t, n.t.endsWithin(n.done, 30*time.Second), "the target ends with SIGTERM")
	require.NoError(n.t, n.err, "the target ends well; it said %q", n.lastWords())
}

// control sends the target a command, which must succeed, and returns the answer.
func (n *nvmeTarget) control(command string) string {
	before := len(n.out.String())
	_, err := io.WriteString(n.in, command+"\n")
	require.NoError(n.t, err, "command %q", command)
	answer := func() string {
		s := n.out.String()[before:]
		if line, _, ok := strings.Cut(s, "\n"); ok {
			return line
		}
		return ""
	}
	require.True(n.t, n.t.within(20*time.Second, func() bool { return answer() != "" }), "the target answers %q", command)
	require.False(n.t, strings.HasPrefix(answer(), "error"), "%s: %s", command, answer())
	return strings.TrimPrefix(answer(), "ok ")
}

// stats returns the counters of the target.
func (n *nvmeTarget) stats() map[string]any {
	var s map[string]any
	require.NoError(n.t, json.Unmarshal([]byte(n.control("stats")), &s), "counters of the target")
	return s
}
