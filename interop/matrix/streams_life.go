package matrix

import (
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rsocket"
)

func streamLifeCases() []Case {
	return slices.Concat(
		inBothRoles(Case{Name: "kill/siw-50", Limit: 6 * time.Minute, Wire: torn}, (*T).streamKills),
		inBothRoles(Case{Name: "kill/siw-5", Core: true, Wire: torn}, func(t *T, cfg *rsocket.Config) { t.killsRstream(cfg, 5) }),
		inBothRoles(Case{Name: "kill/ours-50", Limit: 6 * time.Minute, Wire: torn}, (*T).bridgeKills),
		inBothRoles(Case{Name: "connections/200", Limit: 6 * time.Minute}, (*T).streamConnections),
	)
}

// streamKills repeatedly kills rstream in the middle of traffic.
func (t *T) streamKills(cfg *rsocket.Config) { t.killsRstream(cfg, deaths) }

func (t *T) killsRstream(cfg *rsocket.Config, times int) {
	endless := rstreamRun{4096, 1000, 100000}
	var l *rsocket.Listener
	if t.Role == Responder {
		l = t.listens(cfg)
	}
	for i := range times {
		var e *rstreamEnd
		var p *process
		if t.Role == Responder {
			p = t.siw("rstream", append([]string{"-s", OurIP}, endless.args()...)...)
			e = t.accepts(l, p)
		} else {
			p = t.siw("rstream", endless.args()...)
			e = t.dials(cfg, p)
		}
		ran := make(chan error, 1)
		go func() { ran <- e.runs(t.Role == Initiator, endless) }()
		time.Sleep(time.Duration(rand.IntN(200_000)) * time.Microsecond)
		require.Empty(t, ran, "round %d: it goes on", i)
		p.kill()
		told := make(chan struct{})
		var err error
		go func() { err = <-ran; close(told) }()
		require.True(t, t.endsWithin(told, soon), "round %d: our end is told within %v", i, soon)
		require.Error(t, err)
		require.NotErrorIs(t, err, rsocket.ErrProtocol)
		_ = e.Close() // it has failed already
	}
}

// bridgeKills repeatedly kills our end, a bridge, in the middle of traffic. The next rstream must be served. Whether rstream notices
// depends on librdmacm: with that of Debian 12, nearly every client notices, and hardly any server.
func (t *T) bridgeKills(cfg *rsocket.Config) {
	endless, whole := rstreamRun{4096, 1000, 100000}, rstreamRun{1000, 100, 5}
	told := 0
	for i := range deaths {
		p, bridge, e := t.rstreamBehindBridge(cfg, endless)
		stop := t.bounds(e)
		require.NoError(t, e.syncs(t.Role == Initiator), "round %d; rstream said %q", i, p.lastWords())
		ran := make(chan error, 1)
		go func() { ran <- e.exchanges(t.Role == Initiator, endless) }()
		time.Sleep(time.Duration(rand.IntN(200_000)) * time.Microsecond)
		require.True(t, p.running(), "round %d: it goes on; it said %q", i, p.lastWords())
		bridge.kill()
		require.Error(t, <-ran)
		if t.endsWithin(p.done, 100*time.Millisecond) {
			require.Error(t, p.err, "round %d", i)
			told++
		}
		p.kill()
		stop()
		_ = e.Close() // it has failed already
	}
	t.figure("rstream was told %d times of %d", told, deaths)
	p, _, e := t.rstreamBehindBridge(cfg, whole)
	defer t.bounds(e)()
	require.NoError(t, e.runs(t.Role == Initiator, whole), "rstream said %q", p.lastWords())
	require.NoError(t, e.ends())
	p.succeed()
}

// rstreamBehindBridge starts rstream at siw's end and a bridge at ours, and returns the TCP connection behind the bridge.
func (t *T) rstreamBehindBridge(cfg *rsocket.Config, r rstreamRun) (p, bridge *process, e *rstreamEnd) {
	const port, local = rstreamPort, "127.0.0.1:" + rstreamPort
	if t.Role == Responder {
		l, err := net.Listen("tcp", local)
		require.NoError(t, err)
		defer func() { _ = l.Close() }()
		bridge = t.ours(bridgeProgram, append(flagsOf(cfg), "in", OurIP+":"+port, local)...)
		bridge.says("listening")
		p = t.siw("rstream", append([]string{"-s", OurIP}, r.args()...)...)
		return p, bridge, t.accepts(l, p)
	}
	p = t.siw("rstream", r.args()...)
	p.listeningAt(true, 7471)
	bridge = t.ours(bridgeProgram, append(flagsOf(cfg), "out", local, PeerIP+":"+port)...)
	bridge.says("listening")
	c, err := net.Dial("tcp", local)
	require.NoError(t, err)
	return p, bridge, newRstreamEnd(c)
}

// streamConnections uses and ends 200 connections, 16 at a time, or, as the initiator, 12 in turn.
func (t *T) streamConnections(cfg *rsocket.Config) {
	const all, atOnce = 200, 16
	r := rstreamRun{1000, 3, 1}
	if t.Role == Initiator {
		t.connectsInTurn(cfg, r, all/atOnce) // rstream serves only one connection
		return
	}
	l := t.listens(cfg)
	var served sync.WaitGroup
	failed := make(chan error, all)
	served.Go(func() {
		for range all {
			c, err := l.Accept()
			if err != nil {
				failed <- err
				return
			}
			served.Go(func() {
				e := newRstreamEnd(c)
				defer t.bounds(e)()
				if err := errors.Join(e.runs(false, r), e.ends()); err != nil {
					failed <- err
				}
			})
		}
	})
	for done := 0; done < all; {
		var ps []*process
		for range min(atOnce, all-done) {
			ps = append(ps, t.siw("rstream", append([]string{"-s", OurIP}, r.args()...)...))
		}
		for _, p := range ps {
			p.succeed()
		}
		done += len(ps)
	}
	_ = l.Close() // has accepted them all, or never will
	served.Wait()
	require.Empty(t, failed)
}

// connectsInTurn connects to one rstream after another, each on its own port.
func (t *T) connectsInTurn(cfg *rsocket.Config, r rstreamRun, times int) {
	rnic := t.rnic()
	for i := range times {
		port := 7500 + i
		p := t.siw("rstream", append(r.args(), "-p", strconv.Itoa(port))...)
		p.listeningAt(true, port)
		c, err := rsocket.Dial(t.Ctx, rnic, "tcp", net.JoinHostPort(PeerIP, strconv.Itoa(port)), cfg)
		require.NoError(t, err)
		e := newRstreamEnd(c)
		stop := t.bounds(e)
		require.NoError(t, e.runs(true, r))
		if i%2 == 0 { // this side ends the connection
			require.NoError(t, e.Close())
		} else {
			require.NoError(t, e.ends())
		}
		stop()
		if err := p.wait(); err != nil && i%2 != 0 {
			require.NoError(t, err, "%s", p.lastWords())
		}
	}
}
