package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// stored runs a test in virtual time with a pair of replicas and a client of a tenant.
func stored(t *testing.T, f func(t *testing.T, w *world, c *Client)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "pipe")
		w.start()
		f(t, w, w.client("alpha"))
	})
}

var testMaster = []byte("thirty-two octets, random ones !")

// smallShape has few buckets, so that keys overflow.
var smallShape = Shape{Buckets: 16, Values: 1 << 20}

// A world is a pair of replicas.
type world struct {
	testing.TB
	network string
	dir     string
	half    uint64
	shape   Shape
	tenants []string
	hold    func(stage)
	gate    chan chan struct{}
	backup  *Replica
	primary *Replica
	addrs   [2]string // of the primary, and of the backup
}

func newWorld(t testing.TB, network string) *world {
	return &world{TB: t, network: network, dir: t.TempDir(), half: 1 << 20, shape: smallShape, tenants: []string{"alpha", "beta"}}
}

// context returns a context that ends after a time that no test takes.
func (w *world) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	w.Cleanup(cancel)
	return ctx
}

func (w *world) config(name string, which int) *Config {
	cfg := &Config{
		Network: w.network, Addr: w.addrs[which], Path: filepath.Join(w.dir, name), LogHalf: w.half, Master: testMaster, Plain: true,
		Logger: slog.New(slog.NewTextHandler(w.Output(), nil)), hold: w.hold,
	}
	if cfg.Addr == "" && w.network == "tcp" {
		cfg.Addr = "127.0.0.1:0"
	}
	for _, name := range w.tenants {
		cfg.Tenants = append(cfg.Tenants, Tenant{name, w.shape})
	}
	return cfg
}

func (w *world) startBackup() {
	w.Helper()
	r, err := Open(w.context(), w.config("backup", 1))
	require.NoError(w, err)
	w.backup, w.addrs[1] = r, r.Addr().String()
	w.Cleanup(func() { _ = r.Close() })
}

func (w *world) startPrimary() {
	w.Helper()
	cfg := w.config("primary", 0)
	cfg.Backup = w.addrs[1]
	r, err := Open(w.context(), cfg)
	require.NoError(w, err)
	w.primary, w.addrs[0] = r, r.Addr().String()
	w.Cleanup(func() { _ = r.Close() })
}

// restartPrimary ends the primary, starts it again, and returns a client.
func (w *world) restartPrimary() *Client {
	w.Helper()
	w.kill(w.primary)
	w.startPrimary()
	w.settle()
	return w.client("alpha")
}

// start starts both replicas, and waits until they serve.
func (w *world) start() {
	w.Helper()
	w.startBackup()
	w.startPrimary()
	w.settle()
}

// settle waits until both replicas serve clients and changes are possible.
func (w *world) settle() {
	w.Helper()
	ready := func() bool {
		w.primary.mu.Lock()
		defer w.primary.mu.Unlock()
		return w.primary.writer.linked && w.primary.serving() && w.backup.serving()
	}
	for end := time.Now().Add(20 * time.Second); !ready(); time.Sleep(time.Millisecond) {
		require.True(w, time.Now().Before(end), "the replicas find each other")
	}
}

func (w *world) client(tenant string) *Client {
	w.Helper()
	return w.customClient(tenant, 0, 0)
}

// customClient makes a client with the given OpTimeout, which remembers the locations of so many values.
func (w *world) customClient(tenant string, timeout time.Duration, locations int) *Client {
	w.Helper()
	key, err := TenantKey(testMaster, tenant)
	require.NoError(w, err)
	c, err := Dial(w.context(), &ClientConfig{
		Network: w.network, Primary: w.addrs[0], Backup: w.addrs[1], Tenant: tenant, Key: key, OpTimeout: timeout, Locations: locations,
	})
	require.NoError(w, err)
	w.Cleanup(func() { _ = c.Close() })
	for _, s := range c.sources {
		require.NoError(w, w.until(func() bool { _, err := s.use(); return !errors.Is(err, errConnecting) }), "a test may use the other one, too")
	}
	return c
}

// from reads from one replica only.
func (c *Client) from(ctx context.Context, which int, key string) (string, error) {
	b, err := c.sources[which].get(ctx, []byte(key))
	return string(b), err
}

func (w *world) put(c *Client, key, value string) {
	w.Helper()
	require.NoError(w, c.Put(w.context(), []byte(key), []byte(value)))
}

// holds verifies that both replicas have a value.
func (w *world) holds(c *Client, key, value string) {
	w.Helper()
	for i := range 2 {
		got, err := c.from(w.context(), i, key)
		require.NoError(w, err, "%q at replica %d", key, i)
		require.True(w, bytes.Equal([]byte(value), []byte(got)), "%q at replica %d", key, i)
	}
}

// lacks verifies that no replica has a key.
func (w *world) lacks(c *Client, key string) {
	w.Helper()
	for i := range 2 {
		_, err := c.from(w.context(), i, key)
		require.ErrorIs(w, err, ErrNotFound, "%q at replica %d", key, i)
	}
}

func keyOf(i int) string { return fmt.Sprintf("key %d", i) }
