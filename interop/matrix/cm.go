package matrix

import (
	"fmt"
	"iter"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
)

// cmCases have many connections set up at once, and an Authenticator of ours that siw's side
// knows nothing of.
func cmCases() []Case {
	return []Case{
		{Name: "cm/time-100/responder", Role: Responder, Core: true, Limit: 2 * time.Minute, Run: func(t *T) { t.cmtimeConnects(100, true) }},
		{Name: "cm/time-100-no-auth/responder", Role: Responder, Limit: 2 * time.Minute, Run: func(t *T) { t.cmtimeConnects(100, false) }},
		{Name: "cm/time-1000/responder", Role: Responder, Limit: 5 * time.Minute, Run: func(t *T) { t.cmtimeConnects(1000, true) }},
		{Name: "cm/time-100/initiator", Role: Initiator, Core: true, Limit: 2 * time.Minute, Run: func(t *T) { t.cmtimeAccepts(100) }},
		{Name: "cm/time-1000/initiator", Role: Initiator, Limit: 5 * time.Minute, Run: func(t *T) { t.cmtimeAccepts(1000) }},
		{Name: "cm/rping-allowed/responder", Role: Responder, Core: true, Run: (*T).unauthenticatedPings},
		{Name: "cm/rping-refused/responder", Role: Responder, Core: true, Run: (*T).unauthenticatedIsRefused},
	}
}

// cmtimeQPs is how many QPs one cmtime process must make. With siw the 72nd fails, presumably
// because all its calls of rdma_create_qp share one structure, into which each call writes.
const cmtimeQPs = 50

// cmtimeAtOnce is how many cmtime processes connect at once. siw waits 10 s for a Reply, however
// busy the machine is, and cmtime does not release the processor while it waits.
const cmtimeAtOnce = 4

// cmtimeConnects has cmtime of rdma-core connect n QPs to us. Each of its processes
// begins its connections at once, sends no message, and ends them when all are established.
func (t *T) cmtimeConnects(n int, withAuth bool) {
	var auth *cm.Auth
	if withAuth {
		auth = t.auth(true)
	}
	e := t.open()
	s := e.serveMany(auth, func(qp *iwarp.QP) error {
		<-qp.Done()
		return qp.Err()
	})
	for left := n / cmtimeQPs; left > 0; left -= cmtimeAtOnce {
		t.cmtimeClients(min(left, cmtimeAtOnce))
	}
	s.end()
	require.Empty(t, s.failures(), "every connection ends gracefully here")
	require.Equal(t, n, s.established, "connections that were established")
	require.GreaterOrEqual(t, s.most, cmtimeQPs, "connections at once")
	if withAuth {
		stats := auth.Stats()
		require.EqualValues(t, n, stats.Plain, "connections without authentication")
		require.Empty(t, stats.Refused, "nothing is refused")
		require.Zero(t, stats.HalfOpen, "no set-up is left")
	}
	require.NoError(t, e.pd.Close(), "no queue pair is left")
}

// cmtimeClients runs n clients at once.
func (t *T) cmtimeClients(n int) {
	var clients []*process
	for range n {
		clients = append(clients, t.siw("cmtime", "-s", OurIP, "-p", strconv.Itoa(basePort), "-c", strconv.Itoa(cmtimeQPs)))
	}
	for _, c := range clients {
		c.succeed()
		require.Empty(t, c.errs.String(), "cmtime reports no failure")
		require.False(t, strings.Contains(c.out.String(), "event: "), "cmtime reports no connection that was refused; it said %q", c.lastWords())
	}
}

// cmtimeAccepts has us connect n QPs to cmtime at once, and end them. Its processes have
// a port each, and end what we end.
func (t *T) cmtimeAccepts(n int) {
	e := t.open()
	servers := t.cmtimeServers(n / cmtimeQPs)
	before := t.siwQPs()
	var qps []*iwarp.QP
	opts := &cm.Options{RNIC: e.rnic, QP: e.config(iwarp.QPConfig{}), InFlight: n, PerHost: -1, Timeout: t.pace.Stretch(time.Minute)}
	began := time.Now()
	for _, r := range cm.DialMany(t.Ctx, cmtimeTargets(n), opts) {
		require.NoError(t, r.Err, "after %d connections", len(qps))
		qps = append(qps, r.QP)
	}
	connected := time.Since(began)
	require.Len(t, qps, n)
	for i, qp := range qps {
		require.Equal(t, iwarp.StateRTS, qp.State(), "QP %d", i)
	}
	require.Equal(t, n, t.siwQPs()-before, "siw has a QP for each")
	began = time.Now()
	ended := 0
	for _, err := range cm.DisconnectMany(t.Ctx, slices.Values(qps), &cm.DisconnectOptions{Timeout: t.pace.Stretch(time.Minute)}) {
		require.NoError(t, err, "after %d ends", ended)
		ended++
	}
	t.note("%d QPs are established after %v, and ended after %v", n, connected, time.Since(began))
	require.Equal(t, n, ended)
	require.NoError(t, e.pd.Close(), "no queue pair is left")
	left := func() bool { return t.siwQPs() == before }
	require.True(t, t.within(soon, left), "siw has no queue pair left, but %d", t.siwQPs()-before)
	for _, p := range servers {
		require.True(t, p.running(), "cmtime is there for more; it said %q", p.lastWords())
		require.Empty(t, p.errs.String()+p.out.String(), "cmtime reports no failure")
	}
}

// cmtimeServers starts n servers, at one port after the other.
func (t *T) cmtimeServers(n int) (servers []*process) {
	for i := range n {
		p := t.siw("cmtime", "-b", PeerIP, "-p", strconv.Itoa(basePort+i))
		p.listeningAt(true, basePort+i)
		servers = append(servers, p)
	}
	return servers
}

// cmtimeTargets yields n targets, the same number at each of the servers for as many.
func cmtimeTargets(n int) iter.Seq[cm.Target] {
	return func(yield func(cm.Target) bool) {
		for i := range n {
			port := strconv.Itoa(basePort + i%(n/cmtimeQPs))
			if !yield(cm.Target{Network: "tcp", Addr: net.JoinHostPort(PeerIP, port)}) {
				return
			}
		}
	}
}

// siwQPs returns how many QPs siw has.
func (t *T) siwQPs() int {
	out, err := exec.Command("ip", "netns", "exec", peerSpace, "rdma", "resource", "show").CombinedOutput()
	require.NoError(t, err, "rdma resource show: %s", out)
	words := strings.Fields(string(out))
	for i, w := range words {
		if w == "qp" && i+1 < len(words) {
			n, err := strconv.Atoi(words[i+1])
			require.NoError(t, err, "%s", out)
			return n
		}
	}
	require.FailNow(t, "no number of queue pairs", "%s", out)
	return 0
}

// unauthenticatedPings has rping, which authenticates itself to no one, at a listener that
// allows that.
func (t *T) unauthenticatedPings() {
	auth := t.auth(true)
	e := t.open()
	s := e.serveMany(auth, e.answerPings)
	r := rpingRun{size: 4096, count: 10}
	client := t.siw("rping", append(r.args(false, OurIP), "-v")...)
	client.succeed()
	require.Equal(t, r.count, strings.Count(client.out.String(), "ping data: rdma-ping-"), "the client prints every ping")
	s.end()
	require.Empty(t, s.failures())
	require.EqualValues(t, 1, auth.Stats().Plain, "connections without authentication")
	require.Empty(t, auth.AccessLog(), "nothing is refused")
}

// unauthenticatedIsRefused has rping at a listener that wants authentication.
func (t *T) unauthenticatedIsRefused() {
	auth := t.auth(false)
	s := t.open().serveMany(auth, func(*iwarp.QP) error { return nil })
	client := t.siw("rping", rpingRun{size: 64, count: 1}.args(false, OurIP)...)
	told := func() bool {
		return strings.Contains(client.errs.String()+client.out.String(), "RDMA_CM_EVENT_REJECTED")
	}
	require.True(t, t.within(soon, told), "rping reports that it is refused; it said %q", client.lastWords())
	require.NotContains(t, client.out.String(), "ping data")
	s.end()
	require.Zero(t, s.established, "the application learns of no request")
	log := auth.AccessLog()
	require.Len(t, log, 1, "records of the access log")
	require.Equal(t, cm.ReasonNoBlock, log[0].Reason, "the reason in the access log")
	require.Contains(t, log[0].Source, PeerIP, "and the peer's address")
	require.Equal(t, map[cm.Reason]uint64{cm.ReasonNoBlock: 1}, auth.Stats().Refused)
}

// auth makes an Auth whose key siw's side does not have.
func (t *T) auth(allowUnauthenticated bool) *cm.Auth {
	ring, err := cm.NewRing(cm.Key{ID: 1, Secret: privateData(32), Primary: true})
	require.NoError(t, err)
	auth, err := cm.New(&cm.Config{Ring: ring, ID: [16]byte{1}, AllowUnauthenticated: allowUnauthenticated})
	require.NoError(t, err)
	return auth
}

// note writes a line to the log of the guest.
func (t *T) note(format string, args ...any) {
	fmt.Printf("%s: %s\n", t.Name, fmt.Sprintf(format, args...))
}
