package cm

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// failures contain, for each reason whose refusal must look like all others, a server that
// refuses the frame for it.
var failures = map[Reason]func(t *testing.T) (*site, []byte){
	ReasonNoBlock: func(t *testing.T) (*site, []byte) {
		return siteOf(t, nil), append(startOf("Req", 0x50, 5), "hello"...)
	},
	ReasonMalformed: func(t *testing.T) (*site, []byte) {
		s := siteOf(t, nil)
		return s, append(s.request(s.initiate()), 0)
	},
	ReasonMode: func(t *testing.T) (*site, []byte) {
		s := siteOf(t, func(_, server *Config) { server.Accept = Modes(ModeA) })
		return s, s.request(s.initiate())
	},
	ReasonUnknownKey: func(t *testing.T) (*site, []byte) {
		s := siteOf(t, func(_, server *Config) {
			server.Ring, _ = NewRing(Key{ID: 8, Secret: testMaster, Derive: true})
		})
		return s, s.request(s.initiate())
	},
	ReasonBadMAC: func(t *testing.T) (*site, []byte) {
		s := siteOf(t, nil)
		frame := s.request(s.initiate())
		frame[len(frame)-1] ^= 1
		return s, frame
	},
	ReasonKeyEarly: func(t *testing.T) (*site, []byte) {
		s := siteOf(t, nil)
		_ = s.server.cfg.Ring.Replace(Key{ID: 7, Secret: testMaster, Derive: true, NotBefore: s.clock.Now().Add(1)})
		return s, s.request(s.initiate())
	},
	ReasonStale: func(t *testing.T) (*site, []byte) {
		s := siteOf(t, modeA)
		frame := s.request(s.initiate())
		s.clock.advance(time.Minute)
		return s, frame
	},
	ReasonReplay: func(t *testing.T) (*site, []byte) {
		s := siteOf(t, modeA)
		frame := s.request(s.initiate())
		s.open(frame)
		return s, frame
	},
	ReasonCacheFull: func(t *testing.T) (*site, []byte) {
		s := siteOf(t, func(client, server *Config) { modeA(client, server); server.CacheSize = 1 })
		s.open(s.request(s.initiate()))
		return s, s.request(s.initiate())
	},
	ReasonStore: func(t *testing.T) (*site, []byte) {
		s := siteOf(t, func(client, server *Config) {
			modeA(client, server)
			server.Store = &mapStore{fails: errors.New("no disk")}
		})
		return s, s.request(s.initiate())
	},
	ReasonPublicKey: func(t *testing.T) (*site, []byte) {
		s := siteOf(t, func(client, _ *Config) { client.Suite = SuiteX25519 })
		return s, s.lowOrderRequest(unhex(lowOrder[0]))
	},
	ReasonPolicy: func(t *testing.T) (*site, []byte) {
		s := siteOf(t, func(_, server *Config) {
			server.Authorize = func(context.Context, iwarp.Peer, []byte) error { return errors.New("not this one") }
		})
		return s, s.request(s.initiate())
	},
	ReasonSourceBlocked: func(t *testing.T) (*site, []byte) {
		s := siteOf(t, func(_, server *Config) { server.Limits.FailureBurst = 1 })
		frame := s.request(s.initiate())
		s.open(plainStart(frame))
		return s, frame
	},
}

// plainStart is a frame without private data of the ULP.
func plainStart(frame []byte) []byte { return frame[:frameOff] }

func TestCM_35_37_RefusalsLookTheSame(t *testing.T) {
	for reason, prepare := range failures {
		t.Run(reason.String(), func(t *testing.T) {
			s, frame := prepare(t)
			before := len(s.server.AccessLog())
			r := s.respond()
			defer r.Close()
			_, err := r.Open(frame, frameOff)
			requireReason(t, reason, err)
			require.Equal(t, refusalSize, r.RefuseLen(err))
			_, dataErr := r.Refuse(nil, []byte("of the application"), err)
			require.ErrorIs(t, dataErr, errNoData)
			reply := s.refusal(r, nil, err)
			require.Equal(t, unhex("53434d3201000004010000000000000000000000"), reply[frameOff:frameOff+refusalSize])
			require.Len(t, reply, frameOff+refusalSize)

			log := s.server.AccessLog()
			require.Len(t, log, before+1)
			e := log[before]
			require.Equal(t, reason, e.Reason)
			require.Equal(t, "192.0.2.1", e.Source)
			require.Equal(t, s.clock.Now(), e.Time)
			require.Equal(t, uint64(1), s.server.Stats().Refused[reason])
			if reason != ReasonNoBlock && reason != ReasonSourceBlocked {
				require.Equal(t, uint64(7), e.KeyID)
				require.Equal(t, testClientID, e.ClientID)
				require.Equal(t, s.client.cfg.Mode, e.Mode)
				require.Equal(t, s.client.cfg.Suite, e.Suite)
			}
		})
	}
}

func TestCM_36_OneHMACWhateverIsWrong(t *testing.T) {
	for reason, want := range map[Reason]uint64{
		ReasonUnknownKey: 1, ReasonBadMAC: 1, ReasonKeyEarly: 1, ReasonPolicy: 1, ReasonStale: 1, ReasonPublicKey: 1,
		ReasonNoBlock: 0, ReasonMalformed: 0, ReasonMode: 0, ReasonSourceBlocked: 0,
	} {
		s, frame := failures[reason](t)
		s.refused(frame, reason)
		require.Equal(t, want, s.server.Stats().HMACs, reason)
	}
	s := siteOf(t, nil)
	_ = s.server.cfg.Ring.Replace(Key{ID: 7, Secret: testMaster, Derive: true, NotAfter: s.clock.Now().Add(-1)})
	s.refused(s.request(s.initiate()), ReasonKeyRetired)
	require.Equal(t, uint64(1), s.server.Stats().HMACs)
}

// TestCM_36_RefusalsCostTheSame checks that a bad Request causes the same work as a good one.
func TestCM_36_RefusalsCostTheSame(t *testing.T) {
	for _, reason := range []Reason{ReasonUnknownKey, ReasonBadMAC} {
		s, frame := failures[reason](t)
		r := s.respond()
		_, err := r.Open(frame, frameOff)
		require.Equal(t, &Error{Reason: reason}, err, "no text is made")
		require.NotNil(t, r.transcript)
	}
}

// TestCM_36_UnknownKeyNeverVerifies: even if the attacker knows the key that stands for unknown keys.
func TestCM_36_UnknownKeyNeverVerifies(t *testing.T) {
	s := siteOf(t, nil)
	ring := s.server.cfg.Ring.now.Load()
	require.True(t, ring.dummy.Derive, "it costs as much as the keys of the ring")
	_ = s.client.cfg.Ring.Replace(Key{ID: 1000, Secret: ring.dummy.Secret, Derive: true, Primary: true})
	s.refused(s.request(s.initiate()), ReasonUnknownKey)
}

func TestCM_15_RetiredKey(t *testing.T) {
	s := siteOf(t, nil)
	now := s.clock.Now()
	_ = s.server.cfg.Ring.Replace(
		Key{ID: 7, Secret: testMaster, Derive: true, NotAfter: now.Add(-time.Hour)},
		Key{ID: 8, Secret: testMaster, Derive: true, Primary: true},
	)
	i, r := s.initiate(), s.respond()
	frame := s.request(i)
	_, err := r.Open(frame, frameOff)
	requireReason(t, ReasonKeyRetired, err)
	reply := s.refusal(r, nil, err)
	require.Len(t, reply, frameOff+refusalSize+macSize)

	flips(reply[:len(reply):len(reply)], func(bit int, bad []byte) {
		j := s.initiate()
		j.keys, j.request, j.state = i.keys, i.request, stateRequested
		_, err := j.Open(bad, frameOff)
		require.ErrorIs(t, err, iwarp.ErrAuth)
		if r := new(Refusal); asRefusal(err, &r) {
			require.False(t, r.Signed, "bit %d", bit)
			require.Zero(t, r.KeyHint)
		}
	})
	_, err = i.Open(reply, frameOff)
	got := new(Refusal)
	require.True(t, asRefusal(err, &got))
	require.Equal(t, &Refusal{Code: CodeKeyRetired, KeyHint: 8, Signed: true}, got)
	require.ErrorIs(t, err, iwarp.ErrAuth)

	// A requester that does not hold the key learns nothing.
	r = s.respond()
	frame[len(frame)-1] ^= 1
	_, err = r.Open(frame, frameOff)
	requireReason(t, ReasonBadMAC, err)
	require.Equal(t, byte(CodeRefused), s.refusal(r, nil, err)[frameOff+8])
}

func TestCM_32_TryModeB(t *testing.T) {
	s := siteOf(t, func(client, server *Config) {
		client.Mode = ModeA
		server.Accept = Modes(ModeB)
	})
	i, r := s.initiate(), s.respond()
	require.Zero(t, i.FirstLen())
	_, err := r.Open(s.request(i), frameOff)
	requireReason(t, ReasonBlackout, err)
	require.Zero(t, s.server.Stats().HMACs)
	_, err = i.Open(s.refusal(r, nil, err), frameOff)
	refusal := new(Refusal)
	require.True(t, asRefusal(err, &refusal))
	require.Equal(t, CodeTryModeB, refusal.Code)

	again, err := refusal.Retry().Initiate(t.Context(), &iwarp.AuthInfo{})
	require.NoError(t, err)
	i, r = again.(*initiator), s.respond()
	require.Equal(t, firstSize, i.FirstLen())
	_, err = r.Open(s.request(i), frameOff)
	require.NoError(t, err)
	_, err = i.Open(s.reply(r), frameOff)
	require.NoError(t, err)
	s.confirm(i, r)

	// Only once: the answer to the second attempt leads to no third one.
	again, err = refusal.Retry().Initiate(t.Context(), &iwarp.AuthInfo{})
	require.NoError(t, err)
	s.request(again.(*initiator))
	_, err = again.Open(append(startOf("Rep", 0x70, 20), sampleRefusal(CodeTryModeB, "")...), frameOff)
	require.True(t, asRefusal(err, &refusal))
	require.Nil(t, refusal.Retry())
}

func TestCM_32_UnsignedRefusalsLeadToNothingWeaker(t *testing.T) {
	for _, mode := range []Mode{ModeA, ModeB} {
		for c := CodeRefused; c <= CodeApplication; c++ {
			s := siteOf(t, func(client, _ *Config) { client.Mode = mode })
			i := s.initiate()
			s.request(i)
			app, err := i.Open(append(startOf("Rep", 0x70, 20), sampleRefusal(c, "")...), frameOff)
			require.ErrorIs(t, err, iwarp.ErrAuth)
			require.Nil(t, app)
			r := new(Refusal)
			if c.signed() {
				requireReason(t, ReasonBadMAC, err)
				continue
			}
			require.True(t, asRefusal(err, &r))
			require.Equal(t, mode == ModeA && c == CodeTryModeB, r.Retry() != nil)
			require.ErrorContains(t, err, c.String())
		}
	}
}

func TestRefusalOfTheApplication(t *testing.T) {
	eachKind(t, func(t *testing.T, change func(client, server *Config)) {
		s := siteOf(t, change)
		i, r := s.initiate(), s.respond()
		_, err := r.Open(s.request(i), frameOff)
		require.NoError(t, err)
		cause := errors.New("of the application")
		require.Equal(t, refusalSize+macSize, r.RefuseLen(cause))
		reply := s.refusal(r, []byte("because"), cause)
		app, err := i.Open(reply, frameOff)
		require.NoError(t, err)
		require.Equal(t, "because", string(app))
		_, err = i.First()
		require.ErrorIs(t, err, errNotReady)
		_, err = i.Export("label", nil, 1)
		require.ErrorIs(t, err, errNotReady)
		require.Zero(t, i.Peer())
		r.Close()
		require.Empty(t, s.server.AccessLog())
		require.Zero(t, s.server.Stats().HalfOpen)
	})
}

func TestRefusalBeforeOpen(t *testing.T) {
	s := siteOf(t, nil)
	r := s.respond()
	require.Equal(t, sampleRefusal(CodeRefused, "")[:12], s.refusal(r, nil, errors.New("no frame"))[frameOff:][:12])
}

func TestCM_34_VersionsAndWeakSuites(t *testing.T) {
	for _, m := range []Mode{ModeA, ModeB} {
		s := siteOf(t, func(client, server *Config) {
			client.Mode = m
			server.MinSuite, server.Suite = SuiteX25519, SuiteX25519
		})
		r := s.respond()
		_, err := r.Open(s.request(s.initiate()), frameOff)
		requireReason(t, ReasonVersion, err)
		require.Equal(t, byte(CodeVersion), s.refusal(r, nil, err)[frameOff+8])
		require.Zero(t, s.server.Stats().HMACs)
		s.client.cfg.Suite = SuiteX25519
		s.connect()
	}
}

func TestPeersWithoutAuthentication(t *testing.T) {
	s := siteOf(t, func(_, server *Config) { server.AllowUnauthenticated = true })
	plain := append(startOf("Req", 0x50, 5), "plain"...)
	r := s.respond()
	app, err := r.Open(plain, frameOff)
	require.NoError(t, err)
	require.Equal(t, "plain", string(app))
	require.Zero(t, r.Peer())
	require.Zero(t, r.Overhead())
	require.Zero(t, r.RefuseLen(nil))
	require.Zero(t, r.FirstLen())
	reply := s.reply(r)
	require.Equal(t, append(startOf("Rep", 0x50, 5), "world"...), reply)
	_, err = r.Export("label", nil, 32)
	require.ErrorIs(t, err, iwarp.ErrUnsupported)
	require.Equal(t, 0, s.server.Stats().HalfOpen)
	require.Equal(t, uint64(1), s.server.Stats().Plain)

	r = s.respond()
	_, err = r.Open(plain, frameOff)
	require.NoError(t, err)
	require.Equal(t, append(startOf("Rep", 0x70, 2), "no"...), s.refusal(r, []byte("no"), errors.New("no")))

	// A peer that begins to authenticate itself must complete it.
	s.refused(append(startOf("Req", 0x50, 4), "SCM2"...), ReasonMalformed)
	s.connect()
	// And a client does not connect to a server without authentication.
	i := s.initiate()
	s.request(i)
	_, err = i.Open(reply, frameOff)
	requireReason(t, ReasonNoBlock, err)

	s.server.cfg.Authorize = func(_ context.Context, p iwarp.Peer, app []byte) error {
		require.Zero(t, p)
		require.Equal(t, "plain", string(app))
		return errors.New("not here")
	}
	s.refused(plain, ReasonPolicy)
}

// TestCM_35_AuthorizeThatDoesNotJudgeInTime: it costs the source nothing, because the server has failed.
func TestCM_35_AuthorizeThatDoesNotJudgeInTime(t *testing.T) {
	ends := make(chan context.CancelFunc, 1) // of the set-up
	s := siteOf(t, func(_, server *Config) {
		server.Limits.FailureBurst = 1
		server.Authorize = func(ctx context.Context, _ iwarp.Peer, _ []byte) error { (<-ends)(); return ctx.Err() }
	})
	frame := s.request(s.initiate())
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		ends <- cancel
		r, err := s.server.Respond(ctx, &iwarp.AuthInfo{Network: "tcp", Remote: s.remote})
		require.NoError(t, err)
		_, err = r.Open(frame, frameOff)
		requireReason(t, ReasonNotJudged, err)
		r.Close()
	}
}
