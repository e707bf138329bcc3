package matrix

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rsocket"
)

// rstreamRuns are run in both roles. More octets of fewer messages, and the other way round.
var rstreamRuns = []struct {
	name string
	run  rstreamRun
	core bool
	more []string // flags
}{
	{"1000", rstreamRun{1000, 100, 5}, true, nil},
	{"1", rstreamRun{1, 2000, 2}, true, nil},
	{"64", rstreamRun{64, 1000, 3}, false, nil},
	{"65", rstreamRun{65, 1000, 3}, false, nil},
	{"2047", rstreamRun{2047, 500, 2}, false, nil},
	{"4096", rstreamRun{4096, 500, 2}, false, nil},
	{"64k", rstreamRun{64 << 10, 50, 2}, true, nil},
	{"1m", rstreamRun{1 << 20, 8, 2}, true, nil},
	{"blocking", rstreamRun{3000, 200, 3}, true, []string{"-T", "b"}},
	{"async", rstreamRun{3000, 200, 3}, false, []string{"-T", "a"}},
	{"buffer-4096", rstreamRun{3000, 200, 3}, true, []string{"-B", "4096"}},
	{"keepalive", rstreamRun{3000, 200, 3}, false, []string{"-k", "1"}},
}

func rstreamCases() (all []Case) {
	for _, r := range rstreamRuns {
		all = append(all, inBothRoles(Case{Name: "rstream/" + r.name, Core: r.core}, func(t *T, cfg *rsocket.Config) {
			t.rstream(cfg, r.run, nil, append(r.run.args(), r.more...))
		})...)
	}
	small := rstreamRun{1000, 100, 5}
	all = append(all, inBothRoles(Case{Name: "rstream/16-credits", Core: true}, func(t *T, cfg *rsocket.Config) {
		// Under librspreload the sockets of the system, which -T s selects, are rsockets.
		t.rstream(cfg, small, []string{preload, "RS_RQ_SIZE=16", "RS_SQ_SIZE=16"}, append(small.args(), "-T", "s"))
	})...)
	all = append(all, inBothRoles(Case{Name: "rstream/our-16-credits"}, func(t *T, cfg *rsocket.Config) {
		cfg.Credits, cfg.ReadBuffer, cfg.WriteBuffer = 16, 4<<10, 4<<10
		t.rstream(cfg, small, nil, small.args())
	})...)
	own := Case{Name: "rstream/own", Limit: 15 * time.Minute, NoCapture: true}
	all = append(all, inBothRoles(own, func(t *T, cfg *rsocket.Config) { t.rstreamOwn(cfg, false) })...)
	// All sizes take 20 minutes, or more than an hour beside other work: run them with the CRC in one role, without it in the other.
	own = Case{Name: "rstream/all/crc-on/responder", Limit: 2 * time.Hour, NoCapture: true, Role: Responder}
	own.Run = func(t *T) { t.rstreamOwn(new(rsocket.Config), true) }
	all = append(all, own)
	own.Name, own.Role = "rstream/all/crc-off/initiator", Initiator
	own.Run = func(t *T) { t.rstreamOwn(&rsocket.Config{QP: noCRC}, true) }
	all = append(all, own)
	return all
}

// preload makes a program use rsockets instead of the sockets of the system.
const preload = "LD_PRELOAD=/usr/bin/librspreload.so"

// siwWith starts a program on siw's side with additional environment variables.
func (t *T) siwWith(env []string, name string, args ...string) *process {
	all := slices.Concat([]string{"netns", "exec", peerSpace, "busybox", "env"}, env, []string{name}, args)
	return t.start(exec.Command("ip", all...), name)
}

// dials connects to the program at siw's end, after waiting until it listens.
func (t *T) dials(cfg *rsocket.Config, p *process) *rstreamEnd {
	e, err := t.asks(cfg, p)
	require.NoError(t, err, "%s said %q", p.name, p.lastWords())
	return e
}

// asks is like dials, but the program may refuse.
func (t *T) asks(cfg *rsocket.Config, p *process) (*rstreamEnd, error) {
	p.listeningAt(true, 7471)
	c, err := rsocket.Dial(t.Ctx, t.rnic(), "tcp", net.JoinHostPort(PeerIP, rstreamPort), cfg)
	if err != nil {
		return nil, err
	}
	return newRstreamEnd(c), nil
}

// accepts waits for a connection of the program at siw's end, while the program runs.
func (t *T) accepts(l net.Listener, p *process) *rstreamEnd {
	type accepted struct {
		c   net.Conn
		err error
	}
	got := make(chan accepted, 1)
	go func() {
		c, err := l.Accept()
		got <- accepted{c, err}
	}()
	var c net.Conn
	select {
	case a := <-got:
		require.NoError(t, a.err)
		c = a.c
	case <-p.done:
		require.Fail(t, "no connection", "%s has ended: %v; it said %q", p.name, p.err, p.lastWords())
	case <-t.Ctx.Done():
		require.Fail(t, "no connection", "%s said %q", p.name, p.lastWords())
	}
	return newRstreamEnd(c)
}

// rstream performs one run with rstream, and expects its end.
func (t *T) rstream(cfg *rsocket.Config, r rstreamRun, env, args []string) {
	var e *rstreamEnd
	var p *process
	if t.Role == Responder {
		l := t.listens(cfg)
		p = t.siwWith(env, "rstream", append([]string{"-s", OurIP}, args...)...)
		e = t.accepts(l, p)
	} else {
		p = t.siwWith(env, "rstream", args...)
		e = t.dials(cfg, p)
	}
	defer t.bounds(e)()
	require.NoError(t, e.runs(t.Role == Initiator, r), "rstream said %q", p.lastWords())
	require.NoError(t, e.ends(), "the end of the stream")
	p.succeed()
	require.NotContains(t, p.out.String(), "failed")
}

// bounds makes the calls of a connection fail when the case ends.
func (t *T) bounds(e *rstreamEnd) (stop func() bool) {
	return context.AfterFunc(t.Ctx, func() { _ = e.SetDeadline(time.Unix(1, 0)) })
}

// rstreamSizes returns the sizes of rstream's own runs, with or without -S all.
func rstreamSizes(all bool) []int {
	if !all {
		return []int{1 << 6, 1 << 12, 1 << 16, 1 << 20}
	}
	sizes := []int{1 << 6}
	for n := 1 << 7; n <= 1<<22; n *= 2 {
		sizes = append(sizes, n, n+n/2)
	}
	return sizes
}

// rstreamOwn performs the runs that rstream does by itself: latencies, and on a second connection bandwidths, for which it requests no
// inline data. From rdma-core 51 on, rstream can begin the second half over iWARP. That of Debian 12 cannot: its client ends, and its
// server refuses the connection and continues to wait, without having printed its results.
func (t *T) rstreamOwn(cfg *rsocket.Config, all bool) {
	p, connect := t.rstreamPair(cfg, all)
	sizes := rstreamSizes(all)
	first, err := connect()
	require.NoError(t, err, "rstream said %q", p.lastWords())
	t.rstreamHalf(p, first, sizes, func(size int) rstreamRun { return rstreamRun{size, 1, sizeToCount(size)} })
	whole := !t.endsWithin(p.done, 3*time.Second)
	if whole {
		second, err := connect()
		if reject := new(iwarp.RejectError); errors.As(err, &reject) {
			t.figure("the first half; %v", err)
			return
		}
		require.NoError(t, err, "rstream said %q", p.lastWords())
		second.out, second.in = first.out, first.in // rstream continues to count
		t.rstreamHalf(p, second, sizes, func(size int) rstreamRun { return rstreamRun{size, sizeToCount(size), 1} })
		p.succeed()
		require.Equal(t, len(sizes), strings.Count(p.out.String(), "_bw"), "rstream prints a line for each size")
	}
	require.Equal(t, len(sizes), strings.Count(p.out.String(), "_lat"), "rstream prints a line for each size")
	require.NotContains(t, p.out.String(), "failed")
	t.figure("both halves: %v; rstream ends with %v, and says %s", whole, p.err, p.lastWords())
}

// rstreamHalf performs the runs of all sizes on a connection.
func (t *T) rstreamHalf(p *process, e *rstreamEnd, sizes []int, run func(size int) rstreamRun) {
	defer t.bounds(e)()
	for _, size := range sizes {
		require.NoError(t, e.runs(t.Role == Initiator, run(size)), "%d octets; rstream said %q", size, p.lastWords())
	}
	require.NoError(t, e.ends())
}

// rstreamPair starts rstream with its own sizes, and returns a function that connects to it.
func (t *T) rstreamPair(cfg *rsocket.Config, all bool) (*process, func() (*rstreamEnd, error)) {
	args := []string{"-T", "v"}
	if all {
		args = append(args, "-S", "all")
	}
	if t.Role == Responder {
		l := t.listens(cfg)
		p := t.siw("rstream", append(args, "-s", OurIP)...)
		return p, func() (*rstreamEnd, error) { return t.accepts(l, p), nil }
	}
	p := t.siw("rstream", args...)
	return p, func() (*rstreamEnd, error) { return t.asks(cfg, p) }
}

// sizeToCount returns how often rstream repeats an operation of a size.
func sizeToCount(size int) int {
	switch {
	case size >= 1<<20:
		return 100
	case size >= 1<<16:
		return 1000
	case size >= 1<<10:
		return 10000
	}
	return 100000
}
