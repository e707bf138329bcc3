package iwarp_test

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wiretest"
	"github.com/goiwarp/iwarp/stag"
)

// mostGuessed is how many of up to 10^4 guesses at 16 STags of 2^32 hit, but for one attacker in 10^9: two hits have a
// chance of 7 x 10^-10.
const mostGuessed = 1

// TestAttackGuessedSTagsOverStreams: each guess that fails costs the attacker its stream, so it needs a new one for the
// next guess. 16 regions are open to it, had it their STags. IWARP_STAG_STREAMS sets the number of streams.
func TestAttackGuessedSTagsOverStreams(t *testing.T) {
	tries := 1000
	if s := os.Getenv("IWARP_STAG_STREAMS"); s != "" {
		var err error
		tries, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	bubble(t, func(t *testing.T) {
		s := newSide(t, nil)
		for range 16 {
			s.register(8, stag.LocalWrite|stag.RemoteWrite|stag.RemoteRead, nil)
		}
		_, own := s.register(8, stag.LocalWrite|stag.RemoteWrite, nil) // which it was told
		l, err := s.rnic.Listen(t.Context(), "pipe", "", nil)
		require.NoError(t, err)
		defer l.Close()
		rnd, hits := rand.New(rand.NewPCG(1, 2)), 0
		for i := range tries {
			guess := stag.STag(rnd.Uint32())
			if i%2 == 1 {
				guess = own.STag() + stag.STag(i)
			}
			if guessed(t, s, l, guess, own.STag()) {
				hits++
			}
		}
		require.LessOrEqual(t, hits, mostGuessed)
		require.Zero(t, s.rnic.InUse().MaxQP, "each guess costs a stream")
	})
}

// guessed tries one STag, in a stream of its own, and reports whether the guess is right: then it is the
// Write after it, to an invalid STag, that ends the stream.
func guessed(t *testing.T, s *side, l *iwarp.Listener, guess, own stag.STag) bool {
	t.Helper()
	p := wiretest.Dial(t, "pipe", l.Addr().String(), wiretest.Hex(crcOnly))
	cr, err := l.Accept(t.Context())
	require.NoError(t, err)
	qp, err := cr.Accept(t.Context(), &iwarp.QPConfig{PD: s.pd})
	require.NoError(t, err)
	p.WantReply("the Reply accepts", crcOnly)
	p.Send(wiretest.Write(own, 0, "told"), wiretest.Write(guess, 0, "guess"), wiretest.Write(0, 0, "nothing"))
	terminate := p.Segment()
	require.Equal(t, []byte{0x11, 0x00}, terminate[18:20], "the STag is invalid")
	named := stag.STag(binary.BigEndian.Uint32(terminate[26:]))
	require.True(t, named == guess || named == 0, "the Terminate tells of one of the two")
	p.WantEOF("the stream is lost")
	p.Close()
	<-qp.Done()
	return named != guess
}
