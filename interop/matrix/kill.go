package matrix

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// deaths is how often one side is killed in the middle of traffic.
const deaths = 50

func killCases() []Case {
	return slices.Concat(
		both(Case{Name: "kill/siw-50", Limit: 6 * time.Minute, Wire: torn, Run: (*T).killSiw}),
		both(Case{Name: "kill/ours-50", Limit: 6 * time.Minute, Wire: torn, Run: (*T).killOurs}),
	)
}

var endless = rpingRun{size: 4096}

// pingArgs returns the arguments of an endless conversation.
func (t *T) pingArgs(server bool) []string {
	args := endless.args(server, t.serverIP(false))
	if server && t.Role == Responder {
		return append(args, "-P", "-d") // our program reports more by itself
	}
	if server {
		return append(args, "-P")
	}
	return append(args, "-v")
}

// amidst waits until traffic flows, and then for a random time.
func (t *T) amidst(client *process, round int) {
	pings := func() bool { return strings.Contains(client.out.String(), "ping data") }
	require.True(t, t.eventually(func() bool { return pings() || !client.running() }))
	time.Sleep(time.Duration(rand.IntN(50_000)) * time.Microsecond)
	require.True(t, client.running(), "round %d: the client pings; it said %q", round, client.lastWords())
}

// killSiw kills siw's side again and again.
func (t *T) killSiw() {
	if t.Role == Responder {
		t.killClients()
		return
	}
	for i := range deaths {
		server := t.servePing(t.pingArgs(true)...)
		client := t.clientPing(t.pingArgs(false)...)
		t.amidst(client, i)
		server.kill()
		t.endsSoon(client, i)
		require.Contains(t, client.errs.String(), "iwarp ping: ", "round %d: it says why", i)
	}
}

// killOurs kills our side again and again.
func (t *T) killOurs() {
	if t.Role == Initiator {
		t.killClients()
		return
	}
	// It suffices that rping reports the end. Now and then it then waits forever for its own
	// thread, which waits for a completion event that siw does not raise.
	for i := range deaths {
		server := t.servePing(t.pingArgs(true)...)
		client := t.clientPing(t.pingArgs(false)...)
		t.amidst(client, i)
		server.kill()
		said := func() bool { return strings.Contains(client.errs.String(), "DISCONNECT EVENT") }
		require.True(t, t.within(soon, said), "round %d: rping notices the end; it said %q", i, client.lastWords())
		client.kill()
	}
}

// killClients kills clients of one persistent server, which must serve the next client
// and release everything of the dead ones.
func (t *T) killClients() {
	server := t.servePing(t.pingArgs(true)...)
	r := rpingRun{size: 4096, count: 2}
	round := func(i int) {
		client := t.clientPing(t.pingArgs(false)...)
		t.amidst(client, i)
		client.kill()
	}
	next := func(i int) {
		client := t.clientPing(r.args(false, t.serverIP(false))...)
		require.NoError(t, client.wait(), "round %d: the next client is served; it said %q", i, client.lastWords())
	}
	round(-1)
	next(-1)
	served := 1
	before := server.sockets()
	for i := range deaths {
		round(i)
		if i%10 == 9 {
			next(i)
			served++
		}
	}
	if t.Role == Initiator {
		return // the server is rping
	}
	require.True(t, server.running(), "the server survives: %s", fmt.Sprint(server.err))
	require.True(t, t.within(soon, func() bool { return len(server.sockets()) <= len(before) }),
		"the server keeps nothing of its dead clients: %q open, %q before", server.sockets(), before)
	said := server.errs.String()
	failed, left := strings.Count(said, `msg="client failed"`), strings.Count(said, `msg="client has left"`)
	// siw ends the connections of killed clients gracefully, which a client may do between two
	// pings. The other clients that have left were served in between.
	require.Equal(t, deaths+1+served, failed+left, "it reports every one")
	require.Positive(t, failed, "and those that left in the middle of a ping as failed")
}

// endsSoon expects the survivor to end with an error in time.
func (t *T) endsSoon(p *process, round int) {
	require.True(t, t.endsWithin(p.done, soon), "round %d: the survivor notices within %v", round, soon)
	require.Error(t, p.err, "round %d: the survivor fails", round)
}

// endsWithin reports whether done is closed within a limit.
func (t *T) endsWithin(done <-chan struct{}, limit time.Duration) bool {
	ctx, cancel := t.pace.Context(context.Background(), limit, nil)
	defer cancel()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// within tries until it succeeds or the limit has passed.
func (t *T) within(limit time.Duration, try func() bool) bool {
	ctx, cancel := t.pace.Context(t.Ctx, limit, nil)
	defer cancel()
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if try() {
			return true
		}
	}
	return try()
}

// sockets lists the sockets that the program has open.
func (p *process) sockets() []string {
	dir := "/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/fd/"
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var open []string
	for _, f := range files {
		if to, err := os.Readlink(dir + f.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			open = append(open, to)
		}
	}
	return open
}
