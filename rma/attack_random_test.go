package rma

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/rma/internal/wire"
)

// setting returns the value of an environment variable, or n.
func setting(t testing.TB, variable string, n int) int {
	s := os.Getenv(variable)
	if s == "" {
		return n
	}
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

// tries returns how many attacks a random attacker tries: the number from the environment, or n, or fewer
// with -short or the race detector.
func tries(t testing.TB, variable string, n int) int {
	if testing.Short() || raceorder.Enabled {
		n /= 20
	}
	return setting(t, variable, n)
}

// seed returns the seed of a random attacker. With the same seed it tries the same attacks, in virtual time.
func seed(t testing.TB) uint64 {
	n := setting(t, "IWARP_RMA_SEED", 1)
	t.Logf("IWARP_RMA_SEED=%d", n)
	return uint64(n)
}

// Results of an attack.
const (
	endedByTag     = "outer tag wrong"
	endedByCounter = "not the next message"
	endedByForm    = "malformed"
	endedByRules   = "against the protocol"
	endedByTime    = "no HELLO in time"
	endedBelow     = "terminated by DDP"
	badData        = "bad data"
	overwritten    = "written over by what was asked for"
	tooLate        = "of an operation that was over"
	unnoticed      = "not noticed"
)

// outcome returns how the attacked side saw the end of the connection.
func outcome(err error) string {
	var below *iwarp.TerminateError
	switch {
	case errors.Is(err, wire.ErrTag):
		return endedByTag
	case errors.Is(err, wire.ErrCounter):
		return endedByCounter
	case errors.Is(err, wire.ErrMalformed):
		return endedByForm
	case errors.Is(err, errProtocol):
		return endedByRules
	case errors.Is(err, ErrTimeout):
		return endedByTime
	case errors.As(err, &below) && !below.Remote:
		return endedBelow
	}
	return unnoticed
}

// attacked performs operations while the attacker tries an attack. It reports whether there was an
// an opportunity.
func (f *attackRun) attacked(k *kind, n int) bool {
	f.Helper()
	what := fmt.Sprintf("try %d, %s", n, k.name)
	early := !k.blob && f.virtual() && f.IntN(10) == 0
	if f.virtual() {
		time.Sleep(time.Second) // so that the limit allows records again
	}
	before := f.refusals.Load()
	if !f.ready(k, early) {
		if !f.hasTried() && !f.virtual() { // the machine is too busy
			f.rests()
			_, _ = f.close()
			return false
		}
		require.True(f, f.hasTried(), "%s: an attack is why the set-up has failed: %v", what, f.greeting)
		f.finish(k, nil, before, what)
		return true
	}
	if f.IntN(10) == 0 {
		f.rekeys()
	}
	all := f.operate(runOps)
	f.judge(all, what)
	if !f.hasTried() {
		f.rests()
		f.wantDone(all, what)
		return false
	}
	f.finish(k, all, before, what)
	return true
}

// ready makes a connection if there is none, or if the attack is aimed at its set-up. It reports whether
// there is one now.
func (f *attackRun) ready(k *kind, early bool) bool {
	f.Helper()
	f.tries(nil, 0) // no attack yet
	if f.client != nil && (early || !f.alive()) {
		_, _ = f.close()
	}
	if early {
		f.tries(k, f.IntN(6))
	}
	if f.client == nil && !f.greets() {
		return false
	}
	if !early {
		f.tries(k, f.IntN(8))
	}
	return true
}

// rekeys gives a region another key.
func (f *attackRun) rekeys() {
	h := f.handles[f.IntN(runRegions)]
	f.until(func() {
		if h.Rekey(context.Background(), nil, 0) == nil {
			_ = h.Reopen(context.Background())
		}
	})
}

// wantDone requires honest operations to succeed.
func (f *attackRun) wantDone(all []roundOp, what string) {
	f.Helper()
	if !f.virtual() { // the machine may be too busy
		f.expired += failures(all)
		return
	}
	for i := range all {
		require.NoError(f, all[i].end.Err, what)
	}
}

// finish lets the victim notice the attack, and checks how it has ended.
func (f *attackRun) finish(k *kind, all []roundOp, before uint64, what string) {
	f.Helper()
	f.rests()
	switch {
	case all == nil && f.alive():
		f.until(func() { f.opens() })
	case f.alive() && (!k.spares || f.IntN(4) == 0):
		more := f.operate(2)
		f.judge(more, what)
		if k.spares {
			f.wantDone(more, what)
		}
	}
	if k.spares && f.virtual() {
		f.wantOneFailed(all, before, what)
		f.count(k, badData)
		return
	}
	client, server := f.close()
	f.judge(nil, what)
	victim := server
	if f.victim() == fromClient {
		victim = client
	}
	how := outcome(victim)
	switch {
	case !k.blob || how != unnoticed:
	case failures(all) > 0:
		how = badData
	case f.wasLive():
		how = overwritten
	case f.expired > 0:
		how = tooLate // only in real time
	}
	_, _, typ := f.tried()
	require.NotEqual(f, unnoticed, how, "%s, on %v: the client %v, the server %v", what, typ, client, server)
	if k.blob || !f.virtual() {
		f.count(k, how)
		return
	}
	if !k.behind {
		require.True(f, all == nil || failures(all) > 0, "%s: no operation is done without the message", what)
	}
	if how == endedBelow {
		require.True(f, k.below, "%s: %v", what, victim)
	} else if f.victim() == fromServer && how != endedByTime {
		require.Equal(f, before+1, f.refusals.Load(), "%s: there is a record", what)
	}
	f.count(k, how)
}

// victim returns the side that must notice the attack: fromClient is the client.
func (f *attackRun) victim() int {
	_, dir, _ := f.tried()
	return 1 - dir
}

func failures(all []roundOp) (n int) {
	for i := range all {
		if all[i].end.Err != nil {
			n++
		}
	}
	return n
}

// wantOneFailed requires that only the operation whose blob was attacked has failed, and that the server has
// a record if it was the victim.
func (f *attackRun) wantOneFailed(all []roundOp, before uint64, what string) {
	f.Helper()
	require.Equal(f, 1, failures(all), "%s: one operation fails", what)
	want, records := Read, before
	if f.victim() == fromServer {
		want, records = Write, before+1
	}
	for i := range all {
		if err := all[i].end.Err; err != nil {
			var e *OpError
			require.ErrorAs(f, err, &e, what)
			require.Equal(f, []any{RemoteAuth, BadData, want}, []any{e.Outcome, e.Reason, e.Op}, what)
		}
	}
	require.Equal(f, records, f.refusals.Load(), "%s: there is a record", what)
}

func (f *attackRun) count(k *kind, how string) {
	if f.counts[k.name] == nil {
		f.counts[k.name] = make(map[string]int)
	}
	f.counts[k.name][how]++
}

// report logs the attacks that were tried, and their results.
func (f *attackRun) report(t testing.TB, took time.Duration) {
	t.Helper()
	var text strings.Builder
	total := 0
	for _, name := range slices.Sorted(maps.Keys(f.counts)) {
		for _, how := range slices.Sorted(maps.Keys(f.counts[name])) {
			fmt.Fprintf(&text, "\n%9d  %-32s %s", f.counts[name][how], name, how)
			total += f.counts[name][how]
		}
	}
	t.Logf("%d attacks on %d connections in %v%s", total, f.connections, took.Round(time.Millisecond), &text)
}

// anyKind returns a random kind. Kinds that end the connection are rarer, because a new connection takes
// longer.
func (f *attackRun) anyKind() *kind {
	if f.IntN(10) == 0 {
		return &messageKinds[f.IntN(len(messageKinds))]
	}
	for {
		if k := &blobKinds[f.IntN(len(blobKinds))]; k.spares || f.IntN(5) == 0 {
			return k
		}
	}
}

// attacks tries n attacks.
func (f *attackRun) attacks(n int) {
	for try, done := uint64(0), 0; done < n; try++ {
		f.source.seed(f.seed, try) // the end of a connection may depend on more than the seed
		if f.attacked(f.anyKind(), done) {
			done++
		}
	}
	if f.client != nil {
		client, server := f.close()
		require.NoError(f, server)
		require.ErrorIs(f, client, net.ErrClosed)
	}
	require.NoError(f, f.cfg.PD.Close(), "nothing is left")
	require.NoError(f, f.server.cfg.PD.Close(), "nothing is left")
}

// TestRMA_6_7_8_15_28_KEY_12_RandomAttackerOnTheWire tries what an attacker of type A2 can do that recomputes
// the checksums: neither a region nor a buffer of a client may ever get wrong contents.
func TestRMA_6_7_8_15_28_KEY_12_RandomAttackerOnTheWire(t *testing.T) {
	for name, both := range map[string]bool{"suite 1": false, "suite 2, both serve": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			var f *attackRun
			bubble(t, func(t *testing.T) {
				first := seed(t)
				if both { // it tries other attacks
					first += 1 << 32
				}
				f = newAttackRun(t, "pipe", both, first)
				f.attacks(tries(t, "IWARP_RMA_WIRE", 3000) / 2)
			})
			f.report(t, time.Since(began))
		})
	}
}

// TestRMA_6_7_8_15_28_KEY_12_RandomAttackerOnSockets does the same over TCP, less often.
func TestRMA_6_7_8_15_28_KEY_12_RandomAttackerOnSockets(t *testing.T) {
	began := time.Now()
	f := newAttackRun(t, "tcp", false, seed(t))
	f.attacks(tries(t, "IWARP_RMA_SOCKETS", 60))
	f.report(t, time.Since(began))
}
