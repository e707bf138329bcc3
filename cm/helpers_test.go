package cm

import (
	"bytes"
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/octettest"
)

var (
	unhex  = octettest.Hex
	octets = octettest.Counting
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// frameOff is where the private data of the ULP begin in the frames of the tests.
const frameOff = 24

var (
	testMaster   = octets(0x00, 32)
	testClientID = [16]byte([]byte("client-000000001"))
	testServerID = [16]byte([]byte("server-000000001"))
)

// startOf returns an MPA start-up frame without the private data of the ULP, which are n octets.
func startOf(kind string, flags byte, n int) []byte {
	b := append([]byte("MPA ID "+kind+" Frame"), flags, 2)
	b = binary.BigEndian.AppendUint16(b, uint16(n+4))
	return append(b, 0x00, 0x10, 0x00, 0x10)
}

// fixedRandom returns a nonce, or the seed of a private key, depending on the length requested.
type fixedRandom struct{ nonce, seed []byte }

func (f fixedRandom) Read(b []byte) (int, error) {
	if len(b) == len(f.nonce) {
		return copy(b, f.nonce), nil
	}
	return copy(b, f.seed), nil
}

// A testClock is the clock of one side.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *testClock { return &testClock{now: time.Unix(1700000000, 0)} }

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A site is a client and a server. The server's blackout is just over.
type site struct {
	t              testing.TB
	client, server *Auth
	clock          *testClock // of both
	remote         net.Addr   // of the client
	app            []byte     // private data of the client
}

// siteOf makes both sides. change may change their configurations.
func siteOf(t testing.TB, change func(client, server *Config)) *site {
	t.Helper()
	s := &site{t: t, clock: newClock(), app: []byte("hello"), remote: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4000}}
	clientKeys, err := NewRing(Key{ID: 7, Secret: ClientKey(testMaster, 7, testClientID), Group: "lab", Primary: true})
	require.NoError(t, err)
	serverKeys, err := NewRing(Key{ID: 7, Secret: testMaster, Derive: true, Group: "lab", Primary: true})
	require.NoError(t, err)
	client := &Config{Ring: clientKeys, ID: testClientID, Now: s.clock.Now}
	server := &Config{Ring: serverKeys, ID: testServerID, Now: s.clock.Now, Accept: Modes(ModeA, ModeB)}
	if change != nil {
		change(client, server)
	}
	s.client, err = New(client)
	require.NoError(t, err)
	s.server, err = New(server)
	require.NoError(t, err)
	s.clock.advance(2 * s.server.cfg.Skew)
	return s
}

func (s *site) initiate() *initiator {
	s.t.Helper()
	i, err := s.client.Initiate(s.t.Context(), &iwarp.AuthInfo{Network: "tcp"})
	require.NoError(s.t, err)
	return i.(*initiator)
}

func (s *site) respond() *responder {
	s.t.Helper()
	r, err := s.server.Respond(s.t.Context(), &iwarp.AuthInfo{Network: "tcp", Remote: s.remote})
	require.NoError(s.t, err)
	return r.(*responder)
}

// request returns a Request frame.
func (s *site) request(i *initiator) []byte {
	s.t.Helper()
	frame, err := i.Wrap(startOf("Req", 0x50, i.Overhead()+len(s.app)), s.app)
	require.NoError(s.t, err)
	return frame
}

// reply returns an accepting Reply frame.
func (s *site) reply(r *responder) []byte {
	s.t.Helper()
	app := []byte("world")
	frame, err := r.Wrap(startOf("Rep", 0x50, r.Overhead()+len(app)), app)
	require.NoError(s.t, err)
	return frame
}

// refusal returns a refusing Reply frame.
func (s *site) refusal(r *responder, app []byte, cause error) []byte {
	s.t.Helper()
	frame, err := r.Refuse(startOf("Rep", 0x70, r.RefuseLen(cause)+len(app)), app, cause)
	require.NoError(s.t, err)
	return frame
}

// connect sets up a connection completely.
func (s *site) connect() (*initiator, *responder) {
	s.t.Helper()
	i, r := s.initiate(), s.respond()
	app, err := r.Open(s.request(i), frameOff)
	require.NoError(s.t, err)
	require.Equal(s.t, s.app, app)
	app, err = i.Open(s.reply(r), frameOff)
	require.NoError(s.t, err)
	require.Equal(s.t, "world", string(app))
	s.confirm(i, r)
	return i, r
}

// confirm passes the first message.
func (s *site) confirm(i *initiator, r *responder) {
	s.t.Helper()
	first, err := i.First()
	require.NoError(s.t, err)
	require.Len(s.t, first, r.FirstLen())
	require.Len(s.t, first, i.FirstLen())
	if len(first) > 0 {
		require.NoError(s.t, r.VerifyFirst(first))
	}
}

// refused passes the server a frame that it must refuse, and ends the session.
func (s *site) refused(frame []byte, want Reason) {
	s.t.Helper()
	r := s.respond()
	defer r.Close()
	app, err := r.Open(frame, frameOff)
	require.Nil(s.t, app)
	requireReason(s.t, want, err)
}

func requireReason(t testing.TB, want Reason, err error) {
	t.Helper()
	require.ErrorIs(t, err, iwarp.ErrAuth)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, want, e.Reason, err)
}

// eachKind runs a test in all modes and suites.
func eachKind(t *testing.T, f func(t *testing.T, change func(client, server *Config))) {
	for _, m := range []Mode{ModeA, ModeB} {
		for _, suite := range []Suite{SuiteHMAC, SuiteX25519} {
			t.Run("mode "+m.String()+" suite "+string('0'+byte(suite)), func(t *testing.T) {
				f(t, func(client, _ *Config) { client.Mode, client.Suite = m, suite })
			})
		}
	}
}

// generous sets limits that no test reaches.
func generous(c *Config) {
	c.Limits = Limits{FailureBurst: 1 << 30, HMACs: 1 << 30, MaxHalfOpen: 1 << 30, PerSource: 1 << 30}
}

// flips calls f with the frame once for each bit, with that bit flipped.
func flips(frame []byte, f func(bit int, frame []byte)) {
	for bit := range 8 * len(frame) {
		bad := bytes.Clone(frame)
		bad[bit/8] ^= 1 << (bit % 8)
		f(bit, bad)
	}
}
