package cm

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

func asRefusal(err error, r **Refusal) bool { return errors.As(err, r) }

func TestSetUpInEachModeAndSuite(t *testing.T) {
	eachKind(t, func(t *testing.T, change func(client, server *Config)) {
		s := siteOf(t, change)
		i, r := s.connect()
		require.Equal(t, iwarp.Peer{
			ID: peerID(KindServer, "lab", testServerID[:]), Kind: KindServer, Group: "lab", Name: testServerID,
			KeyID: 7, Mode: uint8(s.client.cfg.Mode), Suite: uint8(s.client.cfg.Suite),
		}, i.Peer())
		require.Equal(t, iwarp.Peer{
			ID: peerID(KindDerived, "lab", testClientID[:]), Kind: KindDerived, Group: "lab", Name: testClientID,
			KeyID: 7, Mode: uint8(s.client.cfg.Mode), Suite: uint8(s.client.cfg.Suite),
		}, r.Peer())
		require.Equal(t, 0, s.server.Stats().HalfOpen)
		i.Close()
		r.Close()
		require.Equal(t, uint64(1), s.server.Stats().Accepted)
		require.Equal(t, uint64(1), s.client.Stats().Connected)
		require.Empty(t, s.server.AccessLog())
	})
}

func TestCM_3_DataThatDoNotFit(t *testing.T) {
	eachKind(t, func(t *testing.T, change func(client, server *Config)) {
		s := siteOf(t, change)
		i, r := s.initiate(), s.respond()
		most := 248 - i.Overhead()
		_, err := i.Wrap(nil, make([]byte, most+1))
		require.ErrorContains(t, err, "of 248 are left for the application")
		s.app = make([]byte, most)
		frame := s.request(i) // after the error, a Request that fits can be sent
		require.Len(t, frame, frameOff+248)
		_, err = r.Open(frame, frameOff)
		require.NoError(t, err)

		most = 248 - r.Overhead()
		_, err = r.Wrap(nil, make([]byte, most+1))
		require.ErrorContains(t, err, "of 248 are left for the application")
		_, err = r.Refuse(nil, make([]byte, 248-r.RefuseLen(nil)+1), nil)
		require.ErrorContains(t, err, "of 248 are left for the application")
		frame, err = r.Wrap(startOf("Rep", 0x50, 248), make([]byte, most))
		require.NoError(t, err)
		require.Len(t, frame, frameOff+248)
		_, err = i.Open(frame, frameOff)
		require.NoError(t, err)
		s.confirm(i, r)
	})
	s := siteOf(t, nil)
	session, err := s.client.Initiate(t.Context(), &iwarp.AuthInfo{MaxPrivate: 100})
	require.NoError(t, err)
	_, err = session.Wrap(nil, make([]byte, 5))
	require.ErrorContains(t, err, "5 octets of private data, where 4 of 100 are left")
}

func TestCM_4_61_RoomForTheApplication(t *testing.T) {
	const offer = 20 // of Commit, in front of the application's own data
	want := map[Suite][2]int{SuiteHMAC: {152, 160}, SuiteX25519: {120, 128}}
	eachKind(t, func(t *testing.T, change func(client, server *Config)) {
		s := siteOf(t, change)
		i, r := s.initiate(), s.respond()
		s.app = bytes.Repeat([]byte("c"), offer+100)
		app, err := r.Open(s.request(i), frameOff)
		require.NoError(t, err)
		require.Equal(t, s.app, app)
		room := [2]int{248 - i.Overhead(), 248 - r.Overhead()}
		require.Equal(t, want[s.client.cfg.Suite], room)
		require.GreaterOrEqual(t, room[0], offer+100)
		frame, err := r.Wrap(startOf("Rep", 0x50, r.Overhead()+len(s.app)), s.app)
		require.NoError(t, err)
		app, err = i.Open(frame, frameOff)
		require.NoError(t, err)
		require.Equal(t, s.app, app)
	})
}

func TestCM_6_EachBitOfTheRequestCounts(t *testing.T) {
	eachKind(t, func(t *testing.T, change func(client, server *Config)) {
		s := siteOf(t, func(client, server *Config) { change(client, server); generous(server) })
		frame := s.request(s.initiate())
		flips(frame, func(bit int, bad []byte) {
			r := s.respond()
			defer r.Close()
			app, err := r.Open(bad, frameOff)
			require.ErrorIs(t, err, iwarp.ErrAuth, "bit %d", bit)
			require.Nil(t, app)
			require.Zero(t, r.Peer())
		})
		require.Zero(t, s.server.Stats().Cached)
		_, err := s.respond().Open(frame, frameOff)
		require.NoError(t, err)
	})
}

func TestCM_7_34_EachBitOfTheReplyCounts(t *testing.T) {
	eachKind(t, func(t *testing.T, change func(client, server *Config)) {
		s := siteOf(t, func(client, server *Config) {
			change(client, server)
			client.Rand = fixedRandom{octets(0xa0, 16), octets(1, 32)}
		})
		sent := func() (*initiator, []byte) {
			s.client.lastID.Store(0)
			i := s.initiate()
			return i, s.request(i)
		}
		_, request := sent()
		r := s.respond()
		_, err := r.Open(request, frameOff)
		require.NoError(t, err)
		reply := s.reply(r)
		flips(reply, func(bit int, bad []byte) {
			i, _ := sent()
			app, err := i.Open(bad, frameOff)
			require.ErrorIs(t, err, iwarp.ErrAuth, "bit %d", bit)
			require.Nil(t, app)
			_, err = i.First()
			require.Error(t, err)
			require.Zero(t, i.Peer())
		})
		i, _ := sent()
		_, err = i.Open(reply, frameOff)
		require.NoError(t, err)

		// The Reply to another Request, with another nonce.
		s.client.cfg.Rand = fixedRandom{octets(0xa1, 16), octets(1, 32)}
		i, _ = sent()
		_, err = i.Open(reply, frameOff)
		requireReason(t, ReasonBadMAC, err)
	})
}

func TestCM_8_EachBitOfTheFirstMessageCounts(t *testing.T) {
	for _, suite := range []Suite{SuiteHMAC, SuiteX25519} {
		s := siteOf(t, func(client, server *Config) { client.Suite = suite; generous(server) })
		quarantined := func() (*initiator, *responder) {
			i, r := s.initiate(), s.respond()
			_, err := r.Open(s.request(i), frameOff)
			require.NoError(t, err)
			_, err = i.Open(s.reply(r), frameOff)
			require.NoError(t, err)
			return i, r
		}
		_, other := quarantined()
		i, _ := quarantined()
		first, err := i.First()
		require.NoError(t, err)
		requireReason(t, ReasonBadFirst, other.VerifyFirst(first)) // of another connection
		for bit := range 8 * firstSize {
			i, r := quarantined()
			first, err := i.First()
			require.NoError(t, err)
			first[bit/8] ^= 1 << (bit % 8)
			requireReason(t, ReasonBadFirst, r.VerifyFirst(first))
			require.ErrorIs(t, r.VerifyFirst(first), errOrder)
		}
		for _, msg := range [][]byte{nil, make([]byte, firstSize), append(first, 0)} {
			_, r := quarantined()
			requireReason(t, ReasonBadFirst, r.VerifyFirst(msg))
		}
	}
}

func TestCM_10_OnlySHA256(t *testing.T) {
	for suite := range 256 {
		require.Equal(t, suite == 1 || suite == 2, Suite(suite).known())
	}
}

func TestCM_11_ClientWithAKeyOfItsOwn(t *testing.T) {
	s := siteOf(t, nil)
	s.connect()
	// It claims to be another client, whose key it does not have.
	s.client.cfg.ID = testServerID
	s.refused(s.request(s.initiate()), ReasonBadMAC)
}

func TestCM_12_HoldersOfASharedKeyAreOne(t *testing.T) {
	s := siteOf(t, nil)
	shared := Key{ID: 3, Secret: octets(1, 16), Group: "lab", Primary: true}
	require.NoError(t, s.client.cfg.Ring.Replace(shared))
	require.NoError(t, s.server.cfg.Ring.Replace(shared))
	_, r := s.connect()
	one := r.Peer()
	s.client.cfg.ID = [16]byte{1, 2, 3}
	_, r = s.connect()
	require.Equal(t, one.ID, r.Peer().ID)
	require.Equal(t, uint8(KindShared), one.Kind)
	require.Equal(t, [16]byte{1, 2, 3}, r.Peer().Name)
}

func TestCM_16_ExportWhenItIsAllowed(t *testing.T) {
	eachKind(t, func(t *testing.T, change func(client, server *Config)) {
		s := siteOf(t, change)
		none := func(side iwarp.AuthSession) {
			_, err := side.Export("label", nil, 32)
			require.ErrorIs(t, err, errNotReady)
		}
		give := func(side iwarp.AuthSession) string {
			b, err := side.Export("label", []byte("context"), 100)
			require.NoError(t, err)
			require.Len(t, b, 100)
			return string(b)
		}
		i, r := s.initiate(), s.respond()
		none(i)
		request := s.request(i)
		none(i)
		none(r)
		_, err := r.Open(request, frameOff)
		require.NoError(t, err)
		none(r)
		reply := s.reply(r)
		none(i)
		if s.client.cfg.Mode == ModeB {
			none(r)
		} else {
			give(r)
		}
		_, err = i.Open(reply, frameOff)
		require.NoError(t, err)
		give(i)
		s.confirm(i, r)
		require.Equal(t, give(i), give(r))
		j, _ := s.connect()
		require.NotEqual(t, give(i), give(j))

		_, err = i.Export("label", nil, 8161)
		require.ErrorContains(t, err, "at most 8160")
		_, err = i.Export("label", nil, -1)
		require.ErrorContains(t, err, "at most 8160")
		_, err = i.Export(strings.Repeat("l", 256), nil, 1)
		require.ErrorContains(t, err, "at most 255")
		most, err := i.Export(strings.Repeat("l", 255), nil, 8160)
		require.NoError(t, err)
		require.Len(t, most, 8160)
		i.Close()
		none(i)
	})
}

func TestCM_19_ModeBNeedsNoClock(t *testing.T) {
	for _, at := range []time.Time{{}, time.Unix(0, 0), time.Unix(1<<40, 0)} {
		s := siteOf(t, func(client, _ *Config) { client.Now = func() time.Time { return at } })
		s.connect()
		s.clock.advance(-1000 * time.Hour) // of the server
		s.connect()
	}
}

func TestCM_34_RepliesThatTheClientRefuses(t *testing.T) {
	s := siteOf(t, func(client, server *Config) {
		client.ExpectServer = func(p iwarp.Peer) error {
			if p.Name != testServerID {
				return errors.New("another server")
			}
			return nil
		}
	})
	try := func(change func(p *reply), want Reason) {
		i := s.initiate()
		s.request(i)
		p := reply{suite: SuiteHMAC, mode: ModeB, serverID: testServerID}
		change(&p)
		frame := p.append(startOf("Rep", 0x50, replySize+len(p.public)+macSize))
		frame = append(frame, i.replyMAC(&i.keys.reply, frame, nil)...) // by a holder of the key
		_, err := i.Open(frame, frameOff)
		if want == 0 {
			require.NoError(t, err)
			return
		}
		requireReason(t, want, err)
		first, err := i.First()
		require.Error(t, err)
		require.Nil(t, first)
	}
	try(func(*reply) {}, 0)
	try(func(p *reply) { p.suite, p.public = SuiteX25519, octets(1, 32) }, ReasonDowngrade)
	try(func(p *reply) { p.mode = ModeA }, ReasonDowngrade)
	try(func(p *reply) { p.serverID = testClientID }, ReasonPolicy)

	i := s.initiate()
	request := s.request(i)
	_, err := i.Open(startOf("Rep", 0x50, 0), frameOff)
	requireReason(t, ReasonNoBlock, err)
	i = s.initiate()
	s.request(i)
	_, err = i.Open(append(startOf("Rep", 0x50, 5), "plain"...), frameOff)
	requireReason(t, ReasonNoBlock, err)
	i = s.initiate()
	s.request(i)
	_, err = i.Open(request, frameOff) // reflected
	requireReason(t, ReasonMalformed, err)
}

// TestMethodsOutOfOrder calls methods that the state does not allow.
func TestMethodsOutOfOrder(t *testing.T) {
	s := siteOf(t, nil)
	i, r := s.initiate(), s.respond()
	_, err := i.Open(nil, 0)
	require.ErrorIs(t, err, errOrder)
	_, err = r.Wrap(nil, nil)
	require.ErrorIs(t, err, errOrder)
	require.ErrorIs(t, r.VerifyFirst(nil), errOrder)
	_, err = r.Open(nil, 1)
	require.ErrorIs(t, err, errOrder)
	_, err = r.First()
	require.ErrorIs(t, err, errOrder)
	_, err = i.Refuse(nil, nil, nil)
	require.ErrorIs(t, err, errOrder)
	require.Zero(t, i.RefuseLen(nil))
	require.ErrorIs(t, i.VerifyFirst(nil), errOrder)

	i, r = s.connect()
	_, err = i.Wrap(nil, nil)
	require.ErrorIs(t, err, errOrder)
	_, err = i.Open(nil, 0)
	require.ErrorIs(t, err, errOrder)
	_, err = r.Open(nil, 0)
	require.ErrorIs(t, err, errOrder)
	_, err = r.Refuse(nil, nil, nil)
	require.ErrorIs(t, err, errOrder)
	require.ErrorIs(t, r.VerifyFirst(nil), errOrder)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.client.Initiate(ctx, &iwarp.AuthInfo{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.server.Respond(ctx, &iwarp.AuthInfo{})
	require.ErrorIs(t, err, context.Canceled)
}

// TestRandomThatFails: no session continues without its random octets.
func TestRandomThatFails(t *testing.T) {
	broken := strings.NewReader("")
	s := siteOf(t, func(client, _ *Config) { client.Suite = SuiteX25519 })
	i := s.initiate()
	s.client.cfg.Rand = broken
	_, err := i.Wrap(nil, nil)
	require.ErrorContains(t, err, "no random octets")
	_, err = s.client.Initiate(t.Context(), &iwarp.AuthInfo{})
	require.ErrorContains(t, err, "no random octets")

	s = siteOf(t, func(client, _ *Config) { client.Suite = SuiteX25519 })
	frame := s.request(s.initiate())
	s.server.cfg.Rand = broken
	_, err = s.respond().Open(frame, frameOff)
	require.ErrorContains(t, err, "no random octets")

	s = siteOf(t, nil)
	r := s.respond()
	_, err = r.Open(s.request(s.initiate()), frameOff)
	require.NoError(t, err)
	s.server.cfg.Rand = broken
	_, err = r.Wrap(nil, nil)
	require.ErrorContains(t, err, "no random octets")
}
