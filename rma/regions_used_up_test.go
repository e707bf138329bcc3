package rma

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stag"
)

// usesUp registers as many regions as the RNIC allows.
func (w *pair) usesUp(pd *iwarp.PD) (mrs []*iwarp.MR) {
	w.Helper()
	for {
		mr, err := pd.RegisterMR(make([]byte, 1), stag.LocalWrite, nil)
		if err != nil {
			require.ErrorIs(w, err, iwarp.ErrLimit)
			return mrs
		}
		mrs = append(mrs, mr)
	}
}

// TestRegionsAreUsedUp: if the RNIC has no further region, an operation that needs one fails, and says why. The connection survives.
func TestRegionsAreUsedUp(t *testing.T) {
	for suite, p := range suites() {
		p.rnic.Limits.MaxMR = 40
		for name, c := range map[string]struct {
			client bool // it has no region
			op     Op
			direct bool
			wants  []error
		}{
			"read, of the client":        {true, Read, false, []error{ErrDispatchTimeout, iwarp.ErrLimit}},
			"direct read, of the client": {true, Read, true, []error{ErrDispatchTimeout, iwarp.ErrLimit}},
			"write, of the client":       {true, Write, false, []error{ErrDispatchTimeout, iwarp.ErrLimit}},
			"read, of the server":        {false, Read, false, []error{ErrNACK}},
			"write, of the server":       {false, Write, false, []error{ErrNACK}},
		} {
			t.Run(suite+", "+name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := start(t, p)
					cmd := Command{Op: c.op, Handle: w.opens(), Buf: make([]byte, 1000), Direct: c.direct}
					portal, pd := w.portal(1), w.plan.server.PD
					if c.client {
						pd = w.plan.client.PD
					}
					mrs := w.usesUp(pd)
					err := does(t, portal, cmd).Err
					for _, want := range c.wants {
						require.ErrorIs(t, err, want)
					}
					if !c.client {
						var e *OpError
						require.ErrorAs(t, err, &e)
						require.Equal(t, QueueFull, e.Reason)
					}
					synctest.Wait()
					for _, c := range []*conn{w.client.c, w.servedConn()} {
						require.Equal(t, c.leases.taken+c.blobs.taken, c.scratch.used(), "what was not registered is not in use")
					}
					for _, mr := range mrs {
						require.NoError(t, mr.Close())
					}
					require.NoError(t, does(t, portal, cmd).Err, "there are regions again")
					require.NoError(t, w.client.Err())
				})
			})
		}
	}
}
