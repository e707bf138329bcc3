package rma

import (
	"context"
	"crypto/tls"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/internal/damage"
	"github.com/goiwarp/iwarp/internal/octettest"
	"github.com/goiwarp/iwarp/internal/rnictest"
)

var octets = octettest.Counting

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// regionID is the number of the region of the tests.
const regionID uint64 = 0x1122334455667788

var (
	testMaster = []byte("thirty-two octets, random ones !")
	testName   = [16]byte([]byte("client-000000001"))
	testKey    = []byte("the secret key of the test region")
)

// A plan describes how the two sides of a test connect.
type plan struct {
	network string // pipe
	plain   bool   // without authentication
	client  ClientConfig
	server  ServerConfig
	change  func(client, server *iwarp.QPConfig)
	rnic    iwarp.Config
	sockets *damage.Sockets                 // not nil: the hosts open their sockets through it, in virtual time
	via     func(network, to string) string // not nil: returns the address that the client connects to instead

	clientTLS, serverTLS *tls.Config
}

// patient makes the timeouts of a plan so long that a busy machine does not matter.
func (p *plan) patient() {
	p.client.OpTimeout, p.client.Dispatch = 20*time.Second, [2]time.Duration{-1, -1}
	p.server.PullTimeout, p.server.Guard, p.server.Dispatch = 20*time.Second, time.Second, [2]time.Duration{-1, -1}
}

// A pair is a client and a server that are connected.
type pair struct {
	testing.TB
	plan   plan
	rnics  [2]*iwarp.RNIC
	qps    [2]*iwarp.QP // of the client, and of the server
	server *Server
	client *Client
	mem    *Memory
	region *Region
	served chan error // what Serve has returned
	stop   context.CancelFunc
}

// qpConfig is the configuration of a QP for rma.
func qpConfig(t testing.TB, rnic *iwarp.RNIC, pd *iwarp.PD, own, peer int) iwarp.QPConfig {
	t.Helper()
	cfg := iwarp.QPConfig{PD: pd}
	require.NoError(t, Prepare(rnic, &cfg, own, peer))
	return cfg
}

func testAuths(t testing.TB) (client, server *cm.Auth) {
	t.Helper()
	mine, err := cm.NewRing(cm.Key{ID: 1, Secret: cm.ClientKey(testMaster, 1, testName), Group: "lab", Primary: true})
	require.NoError(t, err)
	all, err := cm.NewRing(cm.Key{ID: 1, Secret: testMaster, Derive: true, Group: "lab"})
	require.NoError(t, err)
	client, err = cm.New(&cm.Config{Ring: mine, ID: testName})
	require.NoError(t, err)
	server, err = cm.New(&cm.Config{Ring: all, ID: [16]byte([]byte("server-000000001"))})
	require.NoError(t, err)
	return client, server
}

// newPair makes two QPs and a Server with a region.
func newPair(t testing.TB, p plan) *pair {
	t.Helper()
	if p.network == "" {
		p.network = "pipe"
	} else if p.sockets == nil && p.via == nil {
		p.patient()
	}
	w := &pair{TB: t, plan: p, served: make(chan error, 1), mem: NewMemory(make([]byte, 1<<20))}
	var pds [2]*iwarp.PD
	for i := range 2 {
		cfg := p.rnic
		if p.sockets != nil {
			cfg.ListenPacket = p.sockets.Listen(i)
		}
		w.rnics[i], pds[i] = rnictest.Open(t, &cfg)
	}
	w.plan.client.PD, w.plan.server.PD = pds[0], pds[1]
	w.server = NewServer(&w.plan.server)
	region, err := w.server.Register(regionID, w.mem, &RegionOptions{Key: testKey, Ops: allOps})
	require.NoError(t, err)
	w.region = region
	w.connect()
	return w
}

// connect makes the connection.
func (w *pair) connect() {
	w.Helper()
	depth, peer := w.server.cfg.Depth, 0
	if s := w.plan.client.Server; s != nil {
		peer = s.cfg.Depth
	}
	cc := qpConfig(w.TB, w.rnics[0], w.plan.client.PD, peer, depth)
	sc := qpConfig(w.TB, w.rnics[1], w.plan.server.PD, depth, peer)
	lc := iwarp.ListenConfig{TLS: w.plan.serverTLS}
	cc.TLS = w.plan.clientTLS
	if !w.plan.plain {
		client, server := testAuths(w.TB)
		cc.Auth, lc.Auth = client, server
	}
	if w.plan.change != nil {
		w.plan.change(&cc, &sc)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	where := ""
	if w.plan.network != "pipe" {
		where = "127.0.0.1:0"
	}
	l, err := w.rnics[1].Listen(ctx, w.plan.network, where, &lc)
	require.NoError(w, err)
	defer func() { require.NoError(w, l.Close()) }()
	accepted := make(chan error, 1)
	go func() {
		cr, err := l.Accept(ctx)
		if err == nil {
			w.qps[1], err = cr.Accept(ctx, &sc)
		}
		accepted <- err
	}()
	to := l.Addr().String()
	if w.plan.via != nil {
		to = w.plan.via(w.plan.network, to)
	}
	w.qps[0], err = w.rnics[0].Dial(ctx, w.plan.network, to, &cc)
	require.NoError(w, err)
	require.NoError(w, <-accepted)
}

// another makes another connection to the same server.
func (w *pair) another() *pair {
	w.Helper()
	o := &pair{TB: w.TB, plan: w.plan, rnics: w.rnics, server: w.server, mem: w.mem, region: w.region, served: make(chan error, 1)}
	o.connect()
	return o
}

// serve begins to serve.
func (w *pair) serve() {
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	w.Cleanup(cancel)
	go func() { w.served <- w.server.Serve(ctx, w.qps[1]) }()
}

// start makes a pair that has agreed.
func start(t testing.TB, p plan) *pair {
	t.Helper()
	w := newPair(t, p)
	w.serve()
	var err error
	w.client, err = NewClient(w.context(), w.qps[0], &w.plan.client)
	require.NoError(t, err)
	w.Cleanup(func() {
		require.NoError(t, w.client.Close())
		w.stop()
		if w.served != nil {
			require.NoError(t, <-w.served)
		}
	})
	return w
}

func (w *pair) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	w.Cleanup(cancel)
	return ctx
}

// opens opens the region with all rights.
func (w *pair) opens() *Handle {
	w.Helper()
	h, err := w.client.Open(w.context(), regionID, allOps)
	require.NoError(w, err)
	return h
}

func (w *pair) portal(n int) *Portal {
	w.Helper()
	p, err := w.client.Portal(n)
	require.NoError(w, err)
	return p
}

// does performs one operation.
func does(t testing.TB, p *Portal, cmd Command) Completion {
	t.Helper()
	_, err := p.Post(cmd)
	require.NoError(t, err)
	var one [1]Completion
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err = p.Wait(ctx, one[:])
	require.NoError(t, err)
	return one[0]
}

// suites are plans for each suite.
func suites() map[string]plan {
	return map[string]plan{
		"suite 0": {plain: true, client: ClientConfig{Insecure: true}, server: ServerConfig{Insecure: true}},
		"suite 1": {},
		"suite 2": {server: ServerConfig{AES256: true}},
	}
}

// A stuck is a Buffer whose methods block.
type stuck struct {
	*Memory
	entered chan struct{}
	go_     chan struct{}
}

// stall makes the next access to the region block until release.
func (w *pair) stall() *stuck {
	s := &stuck{Memory: w.mem, entered: make(chan struct{}), go_: make(chan struct{})}
	w.region.mu.Lock()
	defer w.region.mu.Unlock()
	w.region.buf = s
	return s
}

func (s *stuck) hold() {
	select {
	case s.entered <- struct{}{}:
	case <-s.go_:
	}
	<-s.go_
}

// wait waits until the server has called a method.
func (s *stuck) wait() { <-s.entered }

// release ends that call, and lets all later ones pass.
func (s *stuck) release() { close(s.go_) }

func (s *stuck) ReadAt(p []byte, off int64) (int, error) {
	s.hold()
	return s.Memory.ReadAt(p, off)
}

func (s *stuck) WriteAt(p []byte, off int64) (int, error) {
	s.hold()
	return s.Memory.WriteAt(p, off)
}
