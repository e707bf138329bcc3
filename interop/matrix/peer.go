package matrix

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// Access rights, with the values of libibverbs.
const (
	localWrite  = 1
	remoteWrite = 2
	remoteRead  = 4
	all         = localWrite | remoteWrite | remoteRead
)

// A peer is the program of peer.c on siw's side, which executes one command at a time.
type peer struct {
	t    *T
	proc *process
	in   io.WriteCloser
	out  *bufio.Scanner
}

// peerWait is how long the peer waits for anything.
const peerWait = 20 * time.Second

func (t *T) peer(options string) *peer {
	p := &peer{t: t}
	wait := strconv.FormatInt(t.pace.Stretch(peerWait).Milliseconds(), 10)
	cmd := exec.Command("ip", "netns", "exec", peerSpace, "/usr/bin/peer", wait)
	var err error
	p.in, err = cmd.StdinPipe()
	require.NoError(t, err)
	r, w := io.Pipe()
	p.out = bufio.NewScanner(r)
	p.out.Buffer(nil, 1<<20)
	p.proc = &process{t: t, name: "peer", cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&p.proc.out, w), &p.proc.errs
	require.NoError(t, cmd.Start())
	go func() {
		p.proc.err = cmd.Wait()
		_ = w.Close() // never fails
		close(p.proc.done)
	}()
	t.Cleanup(p.proc.discard)
	if options != "" {
		p.do("options %s", options)
	}
	return p
}

// try sends a command and returns the peer's answer, whatever it is.
func (p *peer) try(format string, args ...any) string {
	line := fmt.Sprintf(format, args...)
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		return "err " + err.Error()
	}
	if !p.out.Scan() {
		return "err the peer has ended"
	}
	return p.out.Text()
}

// do sends a command, expects "ok", and returns the words after it.
func (p *peer) do(format string, args ...any) []string {
	answer := p.try(format, args...)
	rest, ok := strings.CutPrefix(answer, "ok")
	require.True(p.t, ok, "siw's side does %q, but says %q", fmt.Sprintf(format, args...), answer)
	return strings.Fields(rest)
}

// mr registers one of the peer's buffers and returns what a remote side needs.
func (p *peer) mr(i, size, access int) iwarp.RemoteBuffer {
	w := p.do("mr %d %d %d", i, size, access)
	require.Len(p.t, w, 3)
	key, err := strconv.ParseUint(w[1], 10, 32)
	require.NoError(p.t, err)
	addr, err := strconv.ParseUint(w[2], 10, 64)
	require.NoError(p.t, err)
	return iwarp.RemoteBuffer{STag: stag.STag(key), TO: addr, Len: uint32(size)}
}

// fill and check write and compare octets of a peer's buffer with the pattern of a seed.
func (p *peer) fill(i, off, n, seed int)  { p.do("fill %d %d %d %d", i, off, n, seed) }
func (p *peer) check(i, off, n, seed int) { p.do("check %d %d %d %d", i, off, n, seed) }

func (p *peer) recv(id, i, off, n int) { p.do("recv %d %d %d %d", id, i, off, n) }

func (p *peer) send(id, i, off, n int, flags string, invalidate stag.STag) {
	p.do("send %d %d %d %d %s %d", id, i, off, n, flags, invalidate)
}

func (p *peer) write(id, i, off, n int, flags string, to iwarp.RemoteBuffer) {
	p.do("write %d %d %d %d %s %d %d", id, i, off, n, flags, to.STag, to.TO)
}

func (p *peer) read(id, i, off, n int, flags string, from iwarp.RemoteBuffer) {
	p.do("read %d %d %d %d %s %d %d", id, i, off, n, flags, from.STag, from.TO)
}

// A completion is a completion of the peer.
type completion struct{ id, opcode, status, length, invalidated uint64 }

// wait takes n completions, in order.
func (p *peer) wait(n int) []completion {
	words := p.do("wait %d", n)
	require.Len(p.t, words, n)
	all := make([]completion, n)
	for i, w := range words {
		c := &all[i]
		_, err := fmt.Sscanf(w, "%d:%d:%d:%d:%d", &c.id, &c.opcode, &c.status, &c.length, &c.invalidated)
		require.NoError(p.t, err, w)
	}
	return all
}

// good takes n completions, all of which must be successes.
func (p *peer) good(n int) []completion {
	cs := p.wait(n)
	for _, c := range cs {
		require.Zero(p.t, c.status, "siw's completion %+v is a success", c)
	}
	return cs
}

// privateData finds the private data in the answer of request or connect.
func (p *peer) privateData(words []string) []byte {
	require.NotEmpty(p.t, words)
	text, ok := strings.CutPrefix(words[0], "pd=")
	require.True(p.t, ok, words[0])
	b, err := hex.DecodeString(text)
	require.NoError(p.t, err)
	return b
}

// hexOf returns private data in the form that the peer accepts.
func hexOf(b []byte) string {
	if len(b) == 0 {
		return "-"
	}
	return hex.EncodeToString(b)
}
