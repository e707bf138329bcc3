package cm

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
)

// An attacker keeps all frames that it has seen, and has no key.
type attacker struct {
	*rand.Rand
	seen [][]byte
}

// make makes a frame out of frames that it has seen.
func (a *attacker) make() []byte {
	b := bytes.Clone(a.seen[a.IntN(len(a.seen))])
	for range a.IntN(3) {
		other := a.seen[a.IntN(len(a.seen))]
		switch a.IntN(4) {
		case 0: // flip a bit
			b[a.IntN(len(b))] ^= 1 << a.IntN(8)
		case 1: // splice
			at := min(a.IntN(len(b)), len(other))
			b = append(b[:at:at], other[at:]...)
		case 2: // overwrite a field with that of another frame
			at, n := a.IntN(len(b)), a.IntN(33)
			if end := min(at+n, len(b), len(other)); end > at {
				copy(b[at:end], other[at:end])
			}
		default: // cut
			b = b[:1+a.IntN(len(b))]
		}
	}
	return b
}

// attack lets the attacker play the client, the server, or the client after
// the Reply, and reports whether the other side has accepted it.
func (s *site) attack(a *attacker) bool {
	i, r := s.initiate(), s.respond()
	defer i.Close()
	defer r.Close()
	off := func(b []byte) int { return min(frameOff, len(b)) }
	switch a.IntN(3) {
	case 0:
		msg := a.make()
		if _, err := r.Open(msg, off(msg)); err != nil {
			return false
		}
		s.reply(r)
		if r.FirstLen() == 0 {
			return true
		}
		return r.VerifyFirst(a.make()) == nil
	case 1:
		request := s.request(i)
		if i.FirstLen() > 0 { // in mode A, a Request that has not reached the server yet is valid
			a.seen = append(a.seen[:min(len(a.seen), 64)], request)
		}
		msg := a.make()
		_, err := i.Open(msg, off(msg))
		return err == nil
	default:
		request := s.request(i)
		if _, err := r.Open(request, frameOff); err != nil {
			return false
		}
		a.seen = append(a.seen[:min(len(a.seen), 64)], request, s.reply(r))
		return r.FirstLen() > 0 && r.VerifyFirst(a.make()) == nil
	}
}

// TestCM_6_7_8_27_RandomAttacker runs attacks between honest set-ups, all of which succeed.
func TestCM_6_7_8_27_RandomAttacker(t *testing.T) {
	eachKind(t, func(t *testing.T, change func(client, server *Config)) {
		s := siteOf(t, func(client, server *Config) { change(client, server); generous(server) })
		a := &attacker{Rand: rand.New(rand.NewPCG(1, 2))}
		for n := range 3000 {
			if n%50 == 0 { // it sees a complete set-up
				i, r := s.initiate(), s.respond()
				request := s.request(i)
				_, err := r.Open(request, frameOff)
				require.NoError(t, err)
				reply := s.reply(r)
				_, err = i.Open(reply, frameOff)
				require.NoError(t, err)
				s.confirm(i, r)
				first, err := i.First()
				require.NoError(t, err)
				if len(first) == 0 {
					first = reply
				}
				refused := s.respond()
				_, err = refused.Open(s.bad(), frameOff)
				require.ErrorIs(t, err, iwarp.ErrAuth)
				a.seen = [][]byte{request, reply, first, s.refusal(refused, nil, err)}
				s.clock.advance(time.Second)
			}
			require.False(t, s.attack(a), "attack %d", n)
		}
	})
}
