package cm_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/transport"
)

var (
	master   = []byte("thirty-two octets, random ones !")
	clientID = [16]byte([]byte("client-000000001"))
	serverID = [16]byte([]byte("server-000000001"))
)

func ringOf(t testing.TB, keys ...cm.Key) *cm.Ring {
	t.Helper()
	r, err := cm.NewRing(keys...)
	require.NoError(t, err)
	return r
}

// authsOf makes a client with a key of its own, and a server with the master key that accepts both
// modes and whose blackout is over. change may change the configurations.
func authsOf(t testing.TB, change func(client, server *cm.Config)) (client, server *cm.Auth) {
	t.Helper()
	began := time.Now()
	cc := cm.Config{ID: clientID, Ring: ringOf(t, cm.Key{ID: 7, Secret: cm.ClientKey(master, 7, clientID), Group: "lab", Primary: true})}
	sc := cm.Config{ID: serverID, Ring: ringOf(t, cm.Key{ID: 7, Secret: master, Derive: true, Group: "lab", Primary: true}), Accept: cm.Modes(cm.ModeA, cm.ModeB)}
	var started atomic.Bool
	sc.Now = func() time.Time { // until New has returned, the server's clock shows a time long ago
		if !started.Load() {
			return began.Add(-time.Hour)
		}
		return time.Now()
	}
	if change != nil {
		change(&cc, &sc)
	}
	client, err := cm.New(&cc)
	require.NoError(t, err)
	server, err = cm.New(&sc)
	require.NoError(t, err)
	started.Store(true)
	return client, server
}

// unlimited is for tests whose attackers no limit should stop.
var unlimited = cm.Limits{FailureBurst: 1 << 30, HMACs: 1 << 30, MaxHalfOpen: 1 << 30, PerSource: 1 << 30}

// A counted Authenticator tracks the sessions of another one: each must be closed once.
type counted struct {
	iwarp.Authenticator
	mu       sync.Mutex
	sessions []*countedSession
}

type countedSession struct {
	iwarp.AuthSession
	closed atomic.Int32
}

func (s *countedSession) Close() {
	s.closed.Add(1)
	s.AuthSession.Close()
}

// count wraps an Authenticator. At the end of the test its sessions must have ended.
func count(t testing.TB, a iwarp.Authenticator) *counted {
	c := &counted{Authenticator: a}
	t.Cleanup(func() {
		for _, s := range c.sessions {
			require.Equal(t, int32(1), s.closed.Load(), "a session is closed once")
		}
	})
	return c
}

func (c *counted) add(s iwarp.AuthSession, err error) (iwarp.AuthSession, error) {
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cs := &countedSession{AuthSession: s}
	c.sessions = append(c.sessions, cs)
	return cs, nil
}

func (c *counted) Initiate(ctx context.Context, info *iwarp.AuthInfo) (iwarp.AuthSession, error) {
	return c.add(c.Authenticator.Initiate(ctx, info))
}

func (c *counted) Respond(ctx context.Context, info *iwarp.AuthInfo) (iwarp.AuthSession, error) {
	return c.add(c.Authenticator.Respond(ctx, info))
}

// AllowRev1 is the method of the wrapped Authenticator.
func (c *counted) AllowRev1() bool {
	a, ok := c.Authenticator.(interface{ AllowRev1() bool })
	return ok && a.AllowRev1()
}

// A site is an RNIC with a PD, and the Authenticator of its connections.
type site struct {
	*testing.T
	rnic *iwarp.RNIC
	pd   *iwarp.PD
	auth iwarp.Authenticator
}

func newSite(t *testing.T, a *cm.Auth, cfg *iwarp.Config) *site {
	t.Helper()
	s := &site{T: t}
	if a != nil {
		s.auth = count(t, a)
	}
	var err error
	s.rnic, err = iwarp.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.rnic.Close()) })
	s.pd, err = s.rnic.AllocPD()
	require.NoError(t, err)
	return s
}

// asks returns the configuration of an initiator.
func (s *site) asks() *iwarp.QPConfig { return &iwarp.QPConfig{PD: s.pd, Auth: s.auth} }

// wantQuiet requires that nothing is left of a connection, and that no Event has reported it.
func (s *site) wantQuiet(expectation string) {
	s.Helper()
	require.NoError(s, s.pd.Close(), "no QP is left: %s", expectation)
	select {
	case e := <-s.rnic.Events():
		require.Fail(s, "an Event", "%v: %s", e.Kind, expectation)
	default:
	}
	var err error
	s.pd, err = s.rnic.AllocPD()
	require.NoError(s, err)
}

// An outcome is the result of a set-up on one side.
type outcome struct {
	qp    *iwarp.QP
	err   error
	asked bool // the application has seen a ConnRequest
}

// A host is a site that handles the requests of its listener.
type host struct {
	*site
	addr     string
	listener *iwarp.Listener
	outcomes chan outcome
	answers  func() *iwarp.QPConfig
	refuses  atomic.Bool
	closes   bool // closes connections at once

	begun, ended atomic.Int64 // answers
}

// newHost listens over a network, and serves until the end of the test.
func newHost(t *testing.T, a *cm.Auth, network string, lc *iwarp.ListenConfig, cfg *iwarp.Config) *host {
	t.Helper()
	h := &host{site: newSite(t, a, cfg), outcomes: make(chan outcome, 4096)}
	h.answers = func() *iwarp.QPConfig { return &iwarp.QPConfig{PD: h.pd} }
	if lc == nil {
		lc = new(iwarp.ListenConfig)
	}
	lc.Auth = h.auth
	var err error
	h.listener, err = h.rnic.Listen(t.Context(), network, wiretest.Local(network), lc)
	require.NoError(t, err)
	h.addr = h.listener.Addr().String()
	var all sync.WaitGroup
	all.Go(func() {
		_ = h.listener.Serve(context.Background(), func(cr *iwarp.ConnRequest) {
			all.Add(1)
			defer all.Done()
			h.answer(cr)
		})
	})
	t.Cleanup(func() { _ = h.listener.Close(); all.Wait() })
	return h
}

func (h *host) answer(cr *iwarp.ConnRequest) {
	h.begun.Add(1)
	defer h.ended.Add(1)
	if h.refuses.Load() {
		h.outcomes <- outcome{asked: true, err: cr.Reject([]byte("not today"))}
		return
	}
	qp, err := cr.Accept(context.Background(), h.answers())
	h.outcomes <- outcome{qp: qp, err: err, asked: true}
	if h.closes && err == nil {
		_ = qp.Close()
	}
}

// next waits for the result of a request.
func (h *host) next() outcome {
	h.Helper()
	select {
	case o := <-h.outcomes:
		return o
	case <-time.After(wiretest.Patience):
		require.Fail(h, "no request has been answered")
		return outcome{}
	}
}

// Wire formats of MPA, for peers whose part a test plays.
const (
	startSize = 20 // length of a start-up frame, without the private data
	frameOff  = 24 // where the private data of the ULP begin
)

// startOf returns a start-up frame without the private data of the ULP, which are n octets.
func startOf(kind string, flags byte, n int) []byte {
	b := append([]byte("MPA ID "+kind+" Frame"), flags, 2)
	b = binary.BigEndian.AppendUint16(b, uint16(n+4))
	return append(b, 0x00, 0x10, 0x00, 0x10)
}

// requestOf makes the Request frame of a session.
func requestOf(t testing.TB, s iwarp.AuthSession, app string) []byte {
	t.Helper()
	frame, err := s.Wrap(startOf("Req", 0x50, s.Overhead()+len(app)), []byte(app))
	require.NoError(t, err)
	return frame
}

// initiates begins a session of a client.
func initiates(t testing.TB, a *cm.Auth) iwarp.AuthSession {
	t.Helper()
	s, err := a.Initiate(t.Context(), &iwarp.AuthInfo{Network: "pipe"})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// readFrame reads a start-up frame.
func readFrame(c net.Conn) ([]byte, error) {
	b := make([]byte, startSize, 600)
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	b = b[:startSize+int(binary.BigEndian.Uint16(b[startSize-2:]))]
	_, err := io.ReadFull(c, b[startSize:])
	return b, err
}

// readFPDU reads an FPDU.
func readFPDU(c net.Conn) ([]byte, error) {
	b := make([]byte, 2, 200)
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	n := 2 + int(binary.BigEndian.Uint16(b))
	b = append(b, make([]byte, n+(-n&3)+4-2)...)
	_, err := io.ReadFull(c, b[2:])
	return b, err
}

// dialRaw connects to a host as a peer whose part the test plays.
func dialRaw(t testing.TB, addr string) *wiretest.Peer {
	t.Helper()
	c, err := transport.Dial(t.Context(), "pipe", addr, transport.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return &wiretest.Peer{TB: t, Conn: c}
}

// frame waits for a start-up frame.
func frameFrom(p *wiretest.Peer) []byte {
	p.Helper()
	require.NoError(p, p.Conn.SetReadDeadline(time.Now().Add(wiretest.Patience)))
	b, err := readFrame(p.Conn)
	require.NoError(p, err)
	return b
}

// An intruder is an initiator whose part the test plays, with a session whose key may be right.
type intruder struct {
	*wiretest.Peer
	session iwarp.AuthSession
}

// quarantined advances an intruder until its first message is due.
func quarantined(t testing.TB, a *cm.Auth, addr string) *intruder {
	t.Helper()
	i := &intruder{dialRaw(t, addr), initiates(t, a)}
	i.Write(requestOf(t, i.session, "hello"))
	_, err := i.session.Open(frameFrom(i.Peer), frameOff)
	require.NoError(t, err)
	return i
}

// first returns the message that the host waits for.
func (i *intruder) first() []byte {
	i.Helper()
	b, err := i.session.First()
	require.NoError(i, err)
	return b
}
