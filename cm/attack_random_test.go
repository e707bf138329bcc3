package cm_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/internal/wiretest"
)

// tries returns how many attacks a random attacker tries: the number from the environment, or n, or fewer
// with -short or the race detector.
func tries(t testing.TB, variable string, n int) int {
	if s := os.Getenv(variable); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		return n
	}
	if testing.Short() || raceorder.Enabled {
		return n / 20
	}
	return n
}

// The legs of a set-up.
const (
	legRequest = iota
	legReply
	legFirst
	legs
)

// An attacker sees everything that passes, and modifies it.
type attacker struct {
	rnd  *rand.Rand
	seen [legs][][]byte
}

func newAttacker(seed uint64) *attacker { return &attacker{rnd: rand.New(rand.NewPCG(seed, 16))} }

// sees remembers a frame; if there are many, the oldest one is forgotten.
func (a *attacker) sees(leg int, frame []byte) {
	if len(a.seen[leg]) == 256 {
		a.seen[leg] = slices.Delete(a.seen[leg], 0, 1)
	}
	a.seen[leg] = append(a.seen[leg], bytes.Clone(frame))
}

// old returns a frame that has passed, or nil if there is none.
func (a *attacker) old(leg int) []byte {
	if len(a.seen[leg]) == 0 {
		return nil
	}
	return bytes.Clone(a.seen[leg][a.rnd.IntN(len(a.seen[leg]))])
}

// bend returns another frame instead of the given one: with flipped bits, replayed, spliced, reflected, cut,
// lengthened or dropped (nil).
func (a *attacker) bend(leg int, frame []byte) []byte {
	for range 10 {
		if bent := a.bendOnce(leg, bytes.Clone(frame)); !bytes.Equal(bent, frame) {
			return bent
		}
	}
	return nil
}

func (a *attacker) bendOnce(leg int, b []byte) []byte {
	at := a.rnd.IntN(len(b))
	switch a.rnd.IntN(8) {
	case 0, 1:
		for range 1 + a.rnd.IntN(3) {
			b[a.rnd.IntN(len(b))] ^= 1 << a.rnd.IntN(8)
		}
		return b
	case 2:
		return a.old(leg)
	case 3: // spliced
		old := a.old(leg)
		return append(b[:at], old[min(at, len(old)):]...)
	case 4: // octets of another frame
		if old := a.old(leg); at < len(old) {
			copy(b[at:], old[at:min(len(old), at+1+a.rnd.IntN(32))])
		}
		return b
	case 5: // reflected, instead of the frame that is due
		other := a.old(a.rnd.IntN(legs))
		if leg != legFirst && len(other) > startSize {
			copy(other, b[:len(wiretest.RequestKey)])
		}
		return other
	case 6: // cut, or longer, with a correct length field
		b = append(b[:at], make([]byte, a.rnd.IntN(64))...)
		if leg != legFirst && len(b) > startSize {
			binary.BigEndian.PutUint16(b[startSize-2:], uint16(len(b)-startSize))
		}
		return b
	default:
		return nil
	}
}

// A table connects sessions without a network.
type table struct {
	*testing.T
	*attacker
	clients []*cm.Auth
	server  *cm.Auth
}

func newTable(t *testing.T) *table {
	s := &table{T: t, attacker: newAttacker(1)}
	for range 2 { // the server's master key is the same
		for _, m := range []cm.Mode{cm.ModeA, cm.ModeB} {
			for _, suite := range []cm.Suite{cm.SuiteHMAC, cm.SuiteX25519} {
				var c *cm.Auth
				c, s.server = authsOf(t, func(client, server *cm.Config) {
					client.Mode, client.Suite, server.Limits = m, suite, unlimited
				})
				s.clients = append(s.clients, c)
			}
		}
	}
	return s
}

// client returns a client, usually of suite 1, because suite 2 is slow.
func (s *table) client() *cm.Auth {
	n := s.rnd.IntN(len(s.clients))
	if n%2 == 1 && s.rnd.IntN(20) > 0 {
		n--
	}
	return s.clients[n]
}

// begins makes the sessions of both sides, and a Request.
func (s *table) begins() (i, r iwarp.AuthSession, request []byte) {
	i, err := s.client().Initiate(s.Context(), new(iwarp.AuthInfo))
	require.NoError(s, err)
	return i, s.responds(), requestOf(s, i, "hello")
}

func (s *table) responds() iwarp.AuthSession {
	r, err := s.server.Respond(s.Context(), new(iwarp.AuthInfo))
	require.NoError(s, err)
	return r
}

func replyOf(t testing.TB, r iwarp.AuthSession) []byte {
	t.Helper()
	b, err := r.Wrap(startOf("Rep", 0x50, r.Overhead()), nil)
	require.NoError(t, err)
	return b
}

// honest runs a set-up up to a leg, which the attacker modifies; or to the end if the leg is
// legs. It reports whether the side that receives the leg has accepted it.
func (s *table) honest(bent int) (believed bool) {
	i, r, request := s.begins()
	defer i.Close()
	defer r.Close()
	if bent == legRequest {
		return s.tryRequest(r, s.bend(legRequest, request))
	}
	s.sees(legRequest, request)
	_, err := r.Open(request, frameOff)
	require.NoError(s, err)
	reply := replyOf(s, r)
	if bent == legReply {
		b := s.bend(legReply, reply)
		_, err := i.Open(b, min(frameOff, len(b)))
		return err == nil
	}
	s.sees(legReply, reply)
	_, err = i.Open(reply, frameOff)
	require.NoError(s, err)
	first, err := i.First()
	require.NoError(s, err)
	if first == nil {
		return bent == legs
	}
	if bent == legFirst {
		return r.VerifyFirst(s.bend(legFirst, first)) == nil
	}
	s.sees(legFirst, first)
	return r.VerifyFirst(first) == nil
}

// tryRequest passes a Request to the server. If the server accepts it, which it may do in mode B with
// an old one, tryRequest passes a first message too.
func (s *table) tryRequest(r iwarp.AuthSession, request []byte) bool {
	if _, err := r.Open(request, min(frameOff, len(request))); err != nil {
		require.ErrorIs(s, err, iwarp.ErrAuth)
		return false
	}
	if r.FirstLen() == 0 {
		return true
	}
	replyOf(s, r)
	first := s.old(legFirst)
	return r.VerifyFirst(s.bend(legFirst, first)) == nil || r.VerifyFirst(first) == nil
}

// TestCM_6_7_8_27_RandomAttackerAtTheFrames tries a million times, while honest peers keep
// connecting.
func TestCM_6_7_8_27_RandomAttackerAtTheFrames(t *testing.T) {
	s := newTable(t)
	for range 100 {
		require.True(t, s.honest(legs))
	}
	for n := range tries(t, "IWARP_CM_FRAMES", 1_000_000) {
		leg := legRequest
		if n%8 == 0 {
			leg = s.rnd.IntN(legs)
		}
		require.False(t, s.honest(leg), "try %d, at leg %d", n, leg)
		if n%100 == 0 {
			require.True(t, s.honest(legs), "an honest peer after try %d", n)
		}
	}
	require.Zero(t, s.server.Stats().HalfOpen)
}

// TestCM_6_7_8_27_RandomAttackerOnTheWire does the same with set-ups over the pipe.
func TestCM_6_7_8_27_RandomAttackerOnTheWire(t *testing.T) {
	for _, m := range []cm.Mode{cm.ModeA, cm.ModeB} {
		t.Run("mode "+m.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { attackedAtRandom(t, "pipe", m, tries(t, "IWARP_CM_WIRE", 5_000)) })
		})
	}
}

// TestCM_6_7_8_27_RandomAttackerOnSockets does the same over TCP, less often: ports that were
// used are not free for some time.
func TestCM_6_7_8_27_RandomAttackerOnSockets(t *testing.T) {
	for _, m := range []cm.Mode{cm.ModeA, cm.ModeB} {
		t.Run("mode "+m.String(), func(t *testing.T) { attackedAtRandom(t, "tcp", m, tries(t, "IWARP_CM_SOCKETS", 500)) })
	}
}

func attackedAtRandom(t *testing.T, network string, m cm.Mode, n int) {
	s := newSceneOver(t, network, func(client, _ *cm.Config) { client.Mode = m })
	a := newAttacker(uint64(m))
	watch := func() {
		request, reply, first := s.connects()
		a.sees(legRequest, request)
		a.sees(legReply, reply)
		a.sees(legFirst, first)
	}
	watch()
	watch()
	for n := range n {
		s.attacked(a, m, n)
		if n%50 == 0 {
			watch()
		}
	}
	s.relayed.Wait()
	s.settles()
	require.Eventually(t, func() bool { return s.pd.Close() == nil }, wiretest.Patience, time.Millisecond, "no QP is left")
	require.Empty(t, s.rnic.Events())
	require.Empty(t, s.outcomes)
}

// attacked runs a set-up that an attacker modifies.
func (s *scene) attacked(a *attacker, m cm.Mode, n int) {
	s.Helper()
	leg := n % legs
	if m == cm.ModeA && leg == legFirst {
		leg = legRequest
	}
	bend := func(b []byte) []byte { return a.bend(leg, b) }
	before := s.auth.Stats().Accepted
	switch leg {
	case legRequest:
		_, err := s.dials(&relay{request: bend, hangsUp: true})
		require.Error(s, err, "try %d", n)
		s.settles()
		for len(s.outcomes) > 0 { // an old Request
			require.Error(s, (<-s.outcomes).err, "try %d", n)
		}
	case legReply:
		r := &relay{reply: bend, hangsUp: true}
		_, err := s.dials(r)
		require.Error(s, err, "try %d", n)
		require.Zero(s, r.sent.Load(), "try %d", n)
		s.wantEnded(m, "a Reply that was bent")
	default:
		// Only the message is authenticated, and not how DDP carries it.
		const header = 18
		qp, err := s.dials(&relay{hangsUp: true, first: func(b []byte) []byte {
			if bent := a.bend(leg, b); bent != nil && !bytes.Equal(bent[min(header, len(bent)):], b[header:]) {
				return bent
			}
			return nil
		}})
		require.NoError(s, err)
		<-qp.Done()
		<-s.client.rnic.Events()
		require.ErrorIs(s, s.next().err, iwarp.ErrAuth, "try %d", n)
		s.relayed.Wait()
	}
	if m == cm.ModeB || leg == legRequest {
		require.Equal(s, before, s.auth.Stats().Accepted, "try %d", n)
	}
}
