package cm

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// FuzzRequest opens frames of an attacker that has seen a valid one.
func FuzzRequest(f *testing.F) {
	s := fixedSite(f)
	good := s.request(s.initiate())
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(append(startOf("Req", 0x50, 0), sampleRequest(SuiteX25519)...))
	f.Add(append(startOf("Req", 0x50, 0), sampleReply(SuiteHMAC)...))
	f.Add(append(startOf("Req", 0x50, 0), sampleRefusal(CodeRefused, "")...))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) < frameOff {
			return
		}
		r := s.on(t).respond()
		defer r.Close()
		app, err := r.Open(bytes.Clone(frame), frameOff)
		if bytes.Equal(frame, good) {
			require.NoError(t, err)
			require.Equal(t, s.app, app)
			return
		}
		require.ErrorIs(t, err, iwarp.ErrAuth)
		require.Nil(t, app)
		if q, err := parseRequest(frame[frameOff:]); err == nil {
			require.Len(t, frame, frameOff+requestSize+len(q.public)+len(q.app)+macSize)
		}
	})
}

// on returns the site for another test, such as the function that is fuzzed.
func (s *site) on(t testing.TB) *site {
	other := *s
	other.t = t
	return &other
}

// fixedSite returns a site whose frames are the same in each process that fuzzes.
func fixedSite(t testing.TB) *site {
	return siteOf(t, func(client, server *Config) {
		client.Rand = fixedRandom{octets(0xa0, 16), octets(1, 32)}
		server.Rand = fixedRandom{octets(0xb0, 16), octets(1, 32)}
		generous(server)
	})
}

// opened returns a client whose Request has been sent, and the valid Reply to it. Both are the same
// each time.
func opened(f testing.TB) (fresh func(testing.TB) *initiator, reply []byte) {
	s := fixedSite(f)
	fresh = func(t testing.TB) *initiator {
		s.client.lastID.Store(0)
		i := s.on(t).initiate()
		s.on(t).request(i)
		return i
	}
	r := s.respond()
	s.client.lastID.Store(0)
	_, err := r.Open(s.request(s.initiate()), frameOff)
	require.NoError(f, err)
	return fresh, s.reply(r)
}

// FuzzReply opens Replies of an attacker that has seen the valid one.
func FuzzReply(f *testing.F) {
	fresh, good := opened(f)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(append(startOf("Rep", 0x50, 0), sampleReply(SuiteX25519)...))
	f.Add(append(startOf("Rep", 0x50, 0), sampleRequest(SuiteHMAC)...))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) < frameOff {
			return
		}
		i := fresh(t)
		app, err := i.Open(bytes.Clone(frame), frameOff)
		if bytes.Equal(frame, good) {
			require.NoError(t, err)
			return
		}
		require.ErrorIs(t, err, iwarp.ErrAuth)
		require.Nil(t, app)
		first, err := i.First()
		require.Error(t, err)
		require.Nil(t, first)
	})
}

// FuzzRefusal opens refusals of an attacker. None of them may pass as signed.
func FuzzRefusal(f *testing.F) {
	fresh, _ := opened(f)
	for c := CodeRefused; c <= CodeApplication; c++ {
		f.Add(sampleRefusal(c, ""))
		f.Add(sampleRefusal(c, "because"))
	}
	f.Fuzz(func(t *testing.T, block []byte) {
		i := fresh(t)
		app, err := i.Open(append(startOf("Rep", 0x70, len(block)), block...), frameOff)
		require.ErrorIs(t, err, iwarp.ErrAuth)
		require.Nil(t, app)
		if r := new(Refusal); asRefusal(err, &r) {
			require.False(t, r.Signed)
			require.Nil(t, r.Retry())
		}
		_, err = i.First()
		require.Error(t, err)
	})
}

// FuzzFirst verifies first messages of an attacker that has seen the valid one.
func FuzzFirst(f *testing.F) {
	s := fixedSite(f)
	quarantined := func(t testing.TB) (*initiator, *responder) {
		s.client.lastID.Store(0)
		s.server.lastID.Store(0)
		s := s.on(t)
		i, r := s.initiate(), s.respond()
		_, err := r.Open(s.request(i), frameOff)
		require.NoError(t, err)
		_, err = i.Open(s.reply(r), frameOff)
		require.NoError(t, err)
		return i, r
	}
	i, _ := quarantined(f)
	good, err := i.First()
	require.NoError(f, err)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(sampleFirst())
	f.Add(sampleRequest(SuiteHMAC))
	f.Fuzz(func(t *testing.T, msg []byte) {
		_, r := quarantined(t)
		defer r.Close()
		err := r.VerifyFirst(msg)
		if bytes.Equal(msg, good) {
			require.NoError(t, err)
			return
		}
		require.ErrorIs(t, err, iwarp.ErrAuth)
		_, err = r.Export("x", nil, 32)
		require.Error(t, err)
	})
}
