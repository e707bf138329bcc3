package matrix

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// program is our counterpart of rping, where /init has put it.
const program = "/tmp/iwarp"

// An rpingRun is a conversation of rping with iwarp ping.
type rpingRun struct {
	size, count int
	v6          bool
}

func rpingCases() []Case {
	var all []Case
	for _, role := range []Role{Initiator, Responder} {
		for _, r := range []struct {
			name string
			run  rpingRun
			core bool
		}{
			{"64", rpingRun{size: 64, count: 10}, true},
			{"4k", rpingRun{size: 4096, count: 10}, true},
			{"64k", rpingRun{size: 65535, count: 10}, true},
			{"v6", rpingRun{size: 1000, count: 10, v6: true}, true},
			{"100", rpingRun{size: 64, count: 100}, true},
			{"1000", rpingRun{size: 64, count: 1000}, false},
			{"1000-64k", rpingRun{size: 65535, count: 1000}, false},
		} {
			all = append(all, Case{
				Name: "rping/" + r.name + "/" + string(role), Role: role, Core: r.core, Limit: 2 * time.Minute,
				Run: func(t *T) { t.rping(r.run) },
			})
		}
		all = append(all, Case{
			Name: "rping/persistent/" + string(role), Role: role, Core: role == Responder, Limit: 2 * time.Minute, Run: (*T).rpingPersistent,
		})
	}
	return all
}

// args returns the flags of either program.
func (r rpingRun) args(server bool, ip string) []string {
	role := "-c"
	if server {
		role = "-s"
	}
	return []string{role, "-a", ip, "-p", strconv.Itoa(basePort), "-S", strconv.Itoa(r.size), "-C", strconv.Itoa(r.count), "-V"}
}

// serverIP returns the address of the responder.
func (t *T) serverIP(v6 bool) string {
	switch {
	case t.Role == Initiator && v6:
		return PeerIP6
	case t.Role == Initiator:
		return PeerIP
	case v6:
		return OurIP6
	}
	return OurIP
}

// servePing starts the server that the role calls for.
func (t *T) servePing(args ...string) *process {
	if t.Role == Initiator {
		p := t.siw("rping", args...)
		p.listening(true) // it is a socket of the kernel, which ss lists like any other
		return p
	}
	p := t.ours(program, append([]string{"ping"}, args...)...)
	p.listening(false)
	return p
}

// clientPing starts the client that the role calls for.
func (t *T) clientPing(args ...string) *process {
	if t.Role == Initiator {
		return t.ours(program, append([]string{"ping", "--interval", "0s"}, args...)...) // rping does not pause either
	}
	return t.siw("rping", args...)
}

func (t *T) rping(r rpingRun) {
	ip := t.serverIP(r.v6)
	// rping ends with status 0 even if it failed, so the pings that it prints must be counted.
	verbose := r.count*r.size < 1<<20
	serverArgs, clientArgs := r.args(true, ip), r.args(false, ip)
	if verbose {
		clientArgs = append(clientArgs, "-v")
		// The host decodes our own trace like the capture.
		trace := []string{"--trace", filepath.Join(t.Dir, "trace.pcap")}
		if t.Role == Initiator {
			clientArgs = append(clientArgs, trace...)
		} else {
			serverArgs = append(serverArgs, trace...)
		}
	}
	server := t.servePing(serverArgs...)
	client := t.clientPing(clientArgs...)
	client.succeed()
	if verbose {
		require.Equal(t, r.count, strings.Count(client.out.String(), "ping data: rdma-ping-"), "the client prints every ping")
	}
	if t.Role == Responder {
		server.succeed()
		return
	}
	// rping's server reports it as an error that its client leaves.
	require.True(t, t.eventually(func() bool { return !server.running() }), "rping's server ends with its client")
}

// rpingPersistent runs 16 clients at once. Clients of rping's server must not connect
// simultaneously: of two concurrent requests it loses one (the second overwrites
// cb->child_cm_id before the thread of the first has copied it).
func (t *T) rpingPersistent() {
	r := rpingRun{size: 4096, count: 100}
	ip := t.serverIP(false)
	server := t.servePing(append(r.args(true, ip), "-P")...)
	var clients []*process
	for i := range 16 {
		c := t.clientPing(append(r.args(false, ip), "-v")...)
		clients = append(clients, c)
		if t.Role == Initiator {
			require.True(t, t.eventually(func() bool { return !c.running() || strings.Contains(c.out.String(), "ping data") }), "client %d is served", i)
		}
	}
	for i, c := range clients {
		require.NoError(t, c.wait(), "client %d succeeds; it said %q", i, c.lastWords())
		require.Equal(t, r.count, strings.Count(c.out.String(), "ping data: rdma-ping-"), "client %d prints every ping", i)
	}
	require.True(t, server.running(), "the server is there for more: %s", fmt.Sprint(server.err))
}
