package host

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const subsystem = "nqn.2026-11.org.example:disk"

// virtual runs a test in virtual time.
func virtual(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// pipeOptions returns the options of a test, without Keep Alive. The RNIC allows one PD, so that nothing of an
// association may remain when the next one begins: a PD with regions or QPs cannot be closed.
func pipeOptions(t testing.TB) *Options {
	rnic, err := iwarp.Open(&iwarp.Config{Limits: iwarp.Limits{MaxPD: 1}})
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := rnic.AllocPD()
		require.NoError(t, err, "something is left over")
		require.NoError(t, rnic.Close())
	})
	return &Options{Network: "pipe", RNIC: rnic, KATO: -1, HostNQN: "nqn.2026-11.org.example:host", HostID: [16]byte{1, 2, 3}}
}

// connect connects to a target, until the test ends.
func connect(t testing.TB, tg *target, o *Options) *Controller {
	t.Helper()
	c, err := Connect(context.Background(), tg.addr, subsystem, o)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// disk returns the first namespace of a controller.
func disk(t testing.TB, c *Controller) *Namespace {
	t.Helper()
	list, err := c.Namespaces(context.Background())
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list[0]
}

// event waits for an event of a kind.
func event(t testing.TB, c *Controller, kind EventKind) Event {
	t.Helper()
	for late := time.After(time.Hour); ; {
		select {
		case e := <-c.Events():
			if e.Kind == kind {
				return e
			}
		case <-late:
			t.Fatalf("no event %v", kind)
		}
	}
}

// pattern returns n octets that differ from place to place.
func pattern(n int, seed byte) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i) ^ byte(i>>8)*3 ^ byte(i>>16)*5 ^ seed
	}
	return p
}

// only makes a script that handles the commands of one opcode on I/O queues.
func only(op capsule.Opcode, f func(c *call) bool) func(c *call) bool {
	return func(c *call) bool { return c.q.qid > 0 && c.Opcode == op && f(c) }
}
