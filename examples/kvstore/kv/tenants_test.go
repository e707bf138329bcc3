package kv

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rma"
)

// TestTenantsAreApart: a tenant that names another tenant's region gets no key for it, and no octet.
func TestTenantsAreApart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		w.start()
		alpha, beta := w.client("alpha"), w.client("beta")
		w.put(alpha, "a", "the secret of alpha")
		w.lacks(beta, "a")
		w.put(beta, "a", "that of beta")
		w.holds(alpha, "a", "the secret of alpha")
		w.holds(beta, "a", "that of beta")
		require.NoError(t, beta.Delete(w.context(), []byte("a")))
		w.holds(alpha, "a", "the secret of alpha")

		for i := range 2 {
			conn, err := beta.sources[i].use()
			require.NoError(t, err)
			_, err = conn.client.Open(w.context(), alpha.region, rma.MayRead)
			require.ErrorIs(t, err, rma.ErrRemoteAuth)
			_, err = conn.client.Open(w.context(), beta.region, rma.MayRead)
			require.NoError(t, err, "the connection goes on")
		}
		// Even the other tenant's client is refused as a whole.
		beta.region = alpha.region
		_, err := beta.sources[0].dial()
		require.ErrorIs(t, err, rma.ErrRemoteAuth)
		refused := 0
		for _, e := range w.primary.server.AuditLog() {
			if !e.Granted && e.Region == alpha.region {
				refused++
			}
		}
		require.Equal(t, 2, refused, "each is in the log")
	})
}

// TestOnlyReadsAreGranted: a tenant gets no other right.
func TestOnlyReadsAreGranted(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		conn, err := c.sources[0].use()
		require.NoError(t, err)
		h, err := conn.client.Open(w.context(), c.region, rma.MayRead|rma.MayWrite|rma.MayManage)
		require.NoError(t, err)
		require.Equal(t, rma.MayRead, h.Ops())
		_, err = conn.client.Open(w.context(), c.region, rma.MayWrite)
		require.ErrorIs(t, err, rma.ErrRemoteAuth)
	})
}

// TestLogHasTheNameOfATenant: and not the name's octets as numbers.
func TestLogHasTheNameOfATenant(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		w.startBackup()
		log := new(bytes.Buffer)
		cfg := w.config("primary", 0)
		cfg.Backup, cfg.Logger = w.addrs[1], slog.New(slog.NewTextHandler(log, nil))
		var err error
		w.primary, err = Open(w.context(), cfg)
		require.NoError(t, err)
		w.addrs[0] = w.primary.Addr().String()
		w.settle()
		c := w.client("alpha")
		w.put(c, "key", "value")
		require.NoError(t, c.Close())
		synctest.Wait()
		require.Contains(t, log.String(), "use=C peer=alpha ")
		w.kill(w.primary)
	})
}

// TestUnknownPeersAreRefused: they are refused when they connect.
func TestUnknownPeersAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		w.start()
		dial := func(tenant string, key []byte, use string, to int) error {
			name, err := nameOf(tenant)
			if tenant[0] == '(' {
				name, err = replicatorName, nil
			}
			require.NoError(t, err)
			auth, err := authAs(name, key)
			require.NoError(t, err)
			rnic, err := iwarp.Open(nil)
			require.NoError(t, err)
			defer func() { require.NoError(t, rnic.Close()) }()
			pd, err := rnic.AllocPD()
			require.NoError(t, err)
			_, err = rnic.Dial(w.context(), "pipe", w.addrs[to], &iwarp.QPConfig{PD: pd, Auth: auth, PrivateData: []byte(use)})
			return err
		}
		alpha, err := TenantKey(testMaster, "alpha")
		require.NoError(t, err)
		gamma, err := TenantKey(testMaster, "gamma")
		require.NoError(t, err)
		require.NoError(t, dial("alpha", alpha, "C", 0))
		require.ErrorIs(t, dial("beta", alpha, "C", 0), iwarp.ErrAuth, "with the key of another tenant")
		require.ErrorIs(t, dial("gamma", gamma, "C", 0), iwarp.ErrAuth, "a tenant that is not served")
		require.Error(t, dial("alpha", alpha, "C", 1), "changes at the backup")
		require.Error(t, dial("alpha", alpha, "R", 1), "a tenant that wants to write the log")
		require.Error(t, dial("(replicator)", replicatorKey(testMaster), "R", 0), "the log of the primary")
		require.Error(t, dial("(replicator)", replicatorKey(testMaster), "G", 1), "the replicator is no tenant")
		require.Error(t, dial("alpha", alpha, "X", 0))
		require.Error(t, dial("alpha", alpha, "", 0))
		_, err = TenantKey(testMaster, "(replicator)")
		require.Error(t, err)
	})
}

// TestPlainReadsAreOfOneTenant: the STag of another tenant's memory is of no use.
func TestPlainReadsAreOfOneTenant(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		w.start()
		w.put(w.client("alpha"), "a", "the secret of alpha")
		open := func(tenant string) (*Pipeline, *plainReads) {
			key, err := TenantKey(testMaster, tenant)
			require.NoError(t, err)
			p, err := OpenPipeline(w.context(), &PipelineConfig{Network: "pipe", Addr: w.addrs[0], Tenant: tenant, Key: key, Plain: true})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, p.Close()) })
			return p, p.r.(*plainReads)
		}
		_, alpha := open("alpha")
		p, beta := open("beta")
		beta.where = alpha.where
		require.Error(t, p.Gets(w.context(), 1, func(int) []byte { return []byte("a") }, func(int, Verdict, []byte) {
			require.Fail(t, "no octet")
		}))
		require.Equal(t, make([]byte, len(beta.mem)), beta.mem)
	})
}

// TestKeysRotate: with and without a grace period, during Gets, none of which fails.
func TestKeysRotate(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		for i := range 20 {
			w.put(c, keyOf(i), fmt.Sprint(i))
		}
		var over atomic.Bool
		var gets atomic.Int64
		var tasks sync.WaitGroup
		for range 4 {
			tasks.Go(func() {
				for i := 0; !over.Load(); i++ {
					got, err := c.Get(w.context(), []byte(keyOf(i%20)))
					if err != nil || !bytes.Equal(got, fmt.Append(nil, i%20)) {
						t.Errorf("%q: %q, %v", keyOf(i%20), got, err)
						return
					}
					gets.Add(1)
					time.Sleep(time.Millisecond)
				}
			})
		}
		for i := range 50 {
			for _, r := range []*Replica{w.primary, w.backup} {
				epoch, err := r.Rekey(w.context(), "alpha", time.Duration(i%2)*10*time.Millisecond)
				require.NoError(t, err)
				require.EqualValues(t, i+2, epoch)
			}
			time.Sleep(5 * time.Millisecond)
		}
		over.Store(true)
		tasks.Wait()
		require.Greater(t, gets.Load(), int64(500))
		_, err := w.primary.Rekey(w.context(), "gamma", 0)
		require.Error(t, err)
	})
}

// TestReplicaThatRevokes: if a replica gives out no new keys, Gets go to the other replica.
func TestReplicaThatRevokes(t *testing.T) {
	stored(t, func(t *testing.T, w *world, c *Client) {
		for i := range 10 {
			w.put(c, keyOf(i), "value")
		}
		require.NoError(t, w.primary.regions[c.region].Close())
		delete(w.primary.regions, c.region)
		_, err := c.from(w.context(), 0, keyOf(0))
		require.ErrorIs(t, err, rma.ErrRemoteAuth)
		for i := range 10 {
			got, err := c.Get(context.Background(), []byte(keyOf(i)))
			require.NoError(t, err)
			require.Equal(t, "value", string(got))
		}
	})
}
