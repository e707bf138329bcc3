package cm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// bad returns a Request with a wrong MAC.
func (s *site) bad() []byte {
	frame := s.request(s.initiate())
	frame[len(frame)-1] ^= 1
	return frame
}

func TestCM_39_GoodSetUpsCostNothing(t *testing.T) {
	s := siteOf(t, nil)
	for range 4096 {
		i, r := s.connect()
		i.Close()
		r.Close()
	}
	require.Equal(t, uint64(4096), s.server.Stats().Accepted)
	require.Zero(t, s.server.Stats().Sources)
}

func TestCM_39_FailuresEmptyTheBucket(t *testing.T) {
	s := siteOf(t, nil)
	bad, good := s.bad(), s.request(s.initiate())
	for range 100 {
		require.Equal(t, ReasonBadMAC, s.open(bad))
	}
	hmacs := s.server.Stats().HMACs
	require.Equal(t, ReasonSourceBlocked, s.open(bad))
	require.Equal(t, ReasonSourceBlocked, s.open(good))
	require.Equal(t, hmacs, s.server.Stats().HMACs)
	s.remote = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 2)}
	require.Zero(t, s.open(good), "other sources are not concerned")

	s.remote = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}
	s.clock.advance(3 * time.Second / 20) // the two refusals have been charged, too
	require.Zero(t, s.open(good))
	require.Equal(t, ReasonBadMAC, s.open(bad))
	require.Equal(t, ReasonSourceBlocked, s.open(good))
	s.clock.advance(5 * time.Second)
	for range 90 {
		require.Equal(t, ReasonBadMAC, s.open(bad))
	}
}

func TestCM_39_TenTimesOverIsClosedWithoutAReply(t *testing.T) {
	s := siteOf(t, nil)
	bad, good := s.bad(), s.request(s.initiate())
	begun := s.respond()
	for range 1100 {
		s.open(bad)
	}
	require.Equal(t, uint64(1000), s.server.Stats().Refused[ReasonSourceBlocked])
	_, err := s.server.Respond(t.Context(), &iwarp.AuthInfo{Remote: s.remote})
	requireReason(t, ReasonSourceClosed, err)
	_, err = begun.Open(good, frameOff)
	requireReason(t, ReasonSourceClosed, err)
	_, err = begun.Refuse(startOf("Rep", 0x70, 20), nil, err)
	require.ErrorIs(t, err, errNoReply)

	s.clock.advance(10*time.Second - 1)
	_, err = s.server.Respond(t.Context(), &iwarp.AuthInfo{Remote: s.remote})
	requireReason(t, ReasonSourceClosed, err)
	s.clock.advance(1)
	require.Equal(t, ReasonSourceBlocked, s.open(good), "the bucket is empty after the block")
	s.clock.advance(100 * time.Millisecond)
	require.Zero(t, s.open(good))
}

// TestCM_39_FailuresOfTheSourceAlone: only they are charged. Failures of the server, and refusals that do not suggest a guess,
// cost the source nothing.
func TestCM_39_FailuresOfTheSourceAlone(t *testing.T) {
	charged := map[Reason]bool{
		ReasonSourceClosed: false, ReasonSourceBlocked: true, ReasonHalfOpen: false, ReasonNoBlock: true, ReasonMalformed: true,
		ReasonVersion: true, ReasonMode: true, ReasonBlackout: false, ReasonBudget: false, ReasonUnknownKey: true,
		ReasonBadMAC: true, ReasonKeyEarly: true, ReasonKeyRetired: true, ReasonStale: true, ReasonReplay: true,
		ReasonCacheFull: false, ReasonStore: false, ReasonPublicKey: true, ReasonPolicy: true, ReasonBadFirst: true,
		ReasonNoFirst: true, ReasonDowngrade: false, ReasonNotJudged: false,
	}
	require.Len(t, charged, reasons-1, "each reason is here")
	for reason, want := range charged {
		s := siteOf(t, func(_, server *Config) { server.Limits.FailureBurst = 1 })
		r := s.respond()
		r.report(&Error{Reason: reason}, s.clock.Now())
		blocked := s.server.sources.verdict(r.from, s.clock.Now()) == verdictBlocked
		require.Equal(t, want, blocked, reason)
	}
}

func TestCM_39_Sources(t *testing.T) {
	for _, c := range []struct {
		a    net.Addr
		want string
	}{
		{&net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 1}, "10.1.2.3"},
		{&net.TCPAddr{IP: net.ParseIP("2001:db8:1:2:3:4:5:6"), Port: 1}, "2001:db8:1:2::/64"},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0", Port: 1}, "fe80::/64"},
		{&net.UnixAddr{Name: "/run/x", Net: "unix"}, "unix /run/x"},
		{textAddr("10.0.0.1/10.0.0.2:5000"), "10.0.0.1"},
		{textAddr("10.0.0.1:9899/5000"), "10.0.0.1"},
		{textAddr("[fe80::1]/[fe80::2]:5000"), "fe80::/64"},
		{nil, "unknown"},
	} {
		require.Equal(t, c.want, sourceOf(c.a).String())
	}
	require.Equal(t, sourceOf(textAddr("[2001:db8::1]:1")), sourceOf(textAddr("[2001:db8::ffff]:2")))
	require.NotEqual(t, sourceOf(textAddr("10.0.0.1:1")), sourceOf(textAddr("10.0.0.2:1")))
}

type textAddr string

func (textAddr) Network() string  { return "test" }
func (a textAddr) String() string { return string(a) }

func numbered(n int) source {
	return sourceOf(&net.TCPAddr{IP: net.IPv4(10, byte(n>>16), byte(n>>8), byte(n))})
}

func TestCM_39_TableOfSourcesIsBounded(t *testing.T) {
	clock := newClock()
	table := newSources(Limits{Sources: 100}.withDefaults())
	for n := range 100 {
		table.charge(numbered(n), clock.Now())
	}
	require.Equal(t, 100, table.count())
	for n := 100; n < 300; n++ { // these share one bucket
		table.charge(numbered(n), clock.Now())
	}
	require.Equal(t, 100, table.count())
	require.Equal(t, verdictBlocked, table.verdict(numbered(1000), clock.Now()))
	require.Equal(t, verdictOpen, table.verdict(numbered(1), clock.Now()))

	clock.advance(50 * time.Millisecond) // the buckets of those in the table are full again
	require.Equal(t, verdictOpen, table.verdict(numbered(1000), clock.Now()))
	for n := 100; n < 300; n++ {
		table.charge(numbered(n), clock.Now())
	}
	require.Equal(t, 100, table.count())
	require.Equal(t, verdictBlocked, table.verdict(numbered(1000), clock.Now()))
}

func TestCM_39_BudgetOfHMACs(t *testing.T) {
	s := siteOf(t, func(_, server *Config) { server.Limits.HMACs = 10 })
	frame := s.request(s.initiate())
	for range 10 {
		require.Zero(t, s.open(frame))
	}
	require.Equal(t, ReasonBudget, s.open(frame))
	require.Equal(t, uint64(10), s.server.Stats().HMACs)
	s.clock.advance(100 * time.Millisecond)
	require.Zero(t, s.open(frame))
	require.Equal(t, ReasonBudget, s.open(frame))
}

func TestCM_40_HalfOpen(t *testing.T) {
	s := siteOf(t, func(_, server *Config) { server.Limits = Limits{MaxHalfOpen: 5, PerSource: 3} })
	frame := s.request(s.initiate())
	open := func(host byte) (*responder, error) {
		s.remote = &net.TCPAddr{IP: net.IPv4(192, 0, 2, host)}
		r := s.respond()
		_, err := r.Open(frame, frameOff)
		return r, err
	}
	var begun []*responder
	for range 3 {
		r, err := open(1)
		require.NoError(t, err)
		begun = append(begun, r)
	}
	r, err := open(1)
	requireReason(t, ReasonHalfOpen, err)
	require.Equal(t, byte(CodeBusy), s.refusal(r, nil, err)[frameOff+8])
	r.Close()
	for range 2 {
		r, err := open(2)
		require.NoError(t, err)
		begun = append(begun, r)
	}
	_, err = open(3)
	requireReason(t, ReasonHalfOpen, err)
	require.Equal(t, 5, s.server.Stats().HalfOpen)
	require.Equal(t, uint64(5), s.server.Stats().HMACs)

	s.reply(begun[0]) // in quarantine it still counts
	_, err = open(3)
	requireReason(t, ReasonHalfOpen, err)
	begun[0].Close()
	begun[0].Close()
	r, err = open(3)
	require.NoError(t, err)
	begun = append(begun[1:], r)
	for _, r := range begun {
		r.Close()
	}
	require.Zero(t, s.server.Stats().HalfOpen)
	require.Empty(t, s.server.open.from)

	i, r := s.connect()
	require.Zero(t, s.server.Stats().HalfOpen)
	i.Close()
	r.Close()
	require.Zero(t, s.server.Stats().HalfOpen)
}

func TestCM_40_HalfOpenMemory(t *testing.T) {
	s := siteOf(t, func(_, server *Config) { generous(server) })
	frame := s.request(s.initiate())
	var before, after runtime.MemStats
	const n = 1000
	open := make([]*responder, n)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for k := range open {
		open[k] = s.respond()
		_, err := open[k].Open(frame, frameOff)
		require.NoError(t, err)
		s.reply(open[k])
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.LessOrEqual(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(n*4096))
	runtime.KeepAlive(open)
}

func TestCM_37_QuarantineThatFails(t *testing.T) {
	s := siteOf(t, func(_, server *Config) { server.Limits.FailureBurst = 2 })
	open := func() *responder {
		r := s.respond()
		_, err := r.Open(s.request(s.initiate()), frameOff)
		require.NoError(t, err)
		s.reply(r)
		return r
	}
	open().Close() // a replayed Request: no first message comes
	r := open()
	require.Error(t, r.VerifyFirst(make([]byte, firstSize)))
	r.Close()
	log := s.server.AccessLog()
	require.Len(t, log, 2)
	require.Equal(t, ReasonNoFirst, log[0].Reason)
	require.Equal(t, testClientID, log[0].ClientID)
	require.Equal(t, ReasonBadFirst, log[1].Reason)
	require.Equal(t, "confirm", log[1].Reason.Stage())
	require.Equal(t, ReasonSourceBlocked, s.open(s.request(s.initiate())), "both are charged")
}

func TestCM_37_Record(t *testing.T) {
	var out bytes.Buffer
	s := siteOf(t, func(client, server *Config) {
		modeA(client, server)
		server.Logger = slog.New(slog.NewJSONHandler(&out, nil))
	})
	frame := s.request(s.initiate())
	s.clock.advance(time.Minute)
	r, err := s.server.Respond(t.Context(), &iwarp.AuthInfo{Remote: s.remote, Local: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 9), Port: 7471}})
	require.NoError(t, err)
	_, err = r.Open(frame, frameOff)
	requireReason(t, ReasonStale, err)

	var got map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	delete(got, "time")
	at, err := time.Parse(time.RFC3339Nano, got["at"].(string))
	require.NoError(t, err)
	require.True(t, at.Equal(s.clock.Now()))
	delete(got, "at")
	require.Equal(t, map[string]any{
		"level": "WARN", "msg": "connection refused", "event": 1.0, "source": "192.0.2.1", "listener": "192.0.2.9:7471",
		"reason": "stale time", "stage": "freshness", "key": 7.0, "client": "client-000000001", "mode": "A", "suite": 1.0,
		"age": float64(time.Minute), "suppressed": 0.0,
	}, got)
}

func TestCM_37_IDsInTheLogAreHarmless(t *testing.T) {
	require.Equal(t, `a\n\x1b[0m\"`, printable([16]byte([]byte("a\n\x1b[0m\"\x00\x00\x00\x00\x00\x00\x00\x00"+"\x00"))))
}

func TestCM_38_AMillionRefusals(t *testing.T) {
	clock := newClock()
	var lines int
	l := accessLog{rate: 100, logger: slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
		lines++
		return len(p), nil
	}), nil))}
	table := newSources(Limits{}.withDefaults())
	for n := range 1_000_000 {
		if n%100_000 == 0 {
			clock.advance(time.Second)
		}
		l.add(AccessEvent{Time: clock.Now()}, table.mayLog(numbered(n%50), clock.Now()))
	}
	require.Equal(t, 10*100, lines)
	log := l.list()
	require.Len(t, log, 1000)
	var suppressed uint64
	for _, e := range log {
		suppressed += e.Suppressed
	}
	require.Equal(t, uint64(1_000_000), suppressed+l.suppressed+uint64(len(log)), "none is lost")
	require.Equal(t, uint64(1_000_000-1000), l.lost())

	for range 100 {
		clock.advance(time.Second)
		for range 100 {
			l.add(AccessEvent{Time: clock.Now()}, true)
		}
	}
	log = l.list()
	require.Len(t, log, keptEvents)
	for k := range log[1:] {
		require.Equal(t, log[k].ID+1, log[k+1].ID)
	}
	require.Equal(t, uint64(1_010_000), log[keptEvents-1].ID)
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func TestCM_38_RecordsOfOneSource(t *testing.T) {
	s := siteOf(t, nil)
	bad := s.bad()
	for range 30 {
		s.open(bad)
	}
	require.Len(t, s.server.AccessLog(), 10)
	require.Equal(t, uint64(20), s.server.Stats().Suppressed)
	s.remote = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 2)}
	s.open(bad)
	log := s.server.AccessLog()
	require.Len(t, log, 11)
	require.Equal(t, uint64(20), log[10].Suppressed)
	require.Equal(t, uint64(31), log[10].ID)
}

// secretForms prints a value with many verbs.
func secretForms(v any) string {
	var b bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%08b"} {
		fmt.Fprintf(&b, verb+"\n", v)
	}
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "v", v)
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "v", v)
	return b.String()
}

func TestCM_18_NothingPrintsSecrets(t *testing.T) {
	secret := bytes.Repeat([]byte{0xc5}, 32) // 197, 305 octal
	key := Key{ID: 7, Secret: secret, Primary: true}
	s := siteOf(t, nil)
	require.NoError(t, s.client.cfg.Ring.Replace(key))
	require.NoError(t, s.server.cfg.Ring.Replace(key))
	i, r := s.connect()
	for _, k := range [][]byte{i.secret, i.first[headerSize:], r.secret} {
		for n := range k {
			k[n] = 0xc5
		}
	}
	for _, v := range []any{key, &key, []Key{key}, struct{ Keys []Key }{[]Key{key}}, s.client, s.client.cfg.Ring, i, r, modeB{s.client}, *s.client.cfg.Ring.now.Load().primary} {
		text := secretForms(v)
		for _, form := range []string{"197 197", "c5c5", "C5C5", "0xc5, 0xc5", "305 305", "11000101 11000101", `\xc5\xc5`, "xcXF"} {
			require.NotContains(t, text, form, "%T", v)
		}
	}
	_, err := NewRing(key, key)
	require.NotContains(t, err.Error(), "197")
}

func TestCM_18_CloseWipesSecrets(t *testing.T) {
	s := siteOf(t, func(client, _ *Config) { client.Suite = SuiteX25519 })
	i, r := s.initiate(), s.respond()
	_, err := r.Open(s.request(i), frameOff)
	require.NoError(t, err)
	shared := r.shared
	reply := s.reply(r)
	expected := r.first
	require.Equal(t, make([]byte, 32), shared)
	_, err = i.Open(reply, frameOff)
	require.NoError(t, err)
	s.confirm(i, r)
	require.Equal(t, make([]byte, firstSize), expected)
	for _, side := range []*session{&i.session, &r.session} {
		require.Nil(t, side.ring, "a ring that was replaced can go")
		require.Nil(t, side.keys)
		require.Nil(t, side.private)
		require.Nil(t, side.transcript)
	}

	secrets := [][]byte{i.secret, i.first, r.secret}
	i.Close()
	r.Close()
	i.Close()
	for _, k := range secrets {
		require.Equal(t, make([]byte, len(k)), k)
	}
	// The key is not wiped with the session.
	s.connect()

	// A set-up that does not complete.
	i, r = s.initiate(), s.respond()
	_, err = r.Open(s.request(i), frameOff)
	require.NoError(t, err)
	shared = r.shared
	r.Close()
	i.Close()
	require.Equal(t, make([]byte, 32), shared)
	require.Nil(t, r.keys)
	require.Nil(t, i.private)
}
