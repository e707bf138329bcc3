package stream

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/rsocket/internal/wire"
)

// TestRSK_4_CreditsWrap sends more than 200,000 messages of one octet in each direction, so that all
// counters of 16 bits wrap three times.
func TestRSK_4_CreditsWrap(t *testing.T) {
	const n = 210_000
	a, b := join(t, sizes{half: 4096, credits: 384, ring: 1}, sizes{half: 8192, credits: 100, ring: 1})
	one := program{total: n, write: 1, reads: 64}
	run(t, a, b, one, one, 1)
	require.Equal(t, n, a.messages, "each octet was a message of its own")
	require.Equal(t, n, b.messages)
}

// TestRSK_5_SmallMessagesNeverStall: messages of one octet, of which a half holds far more than there are
// credits.
func TestRSK_5_SmallMessagesNeverStall(t *testing.T) {
	for _, credits := range []int{16, 17, 384} {
		a, b := join(t, sizes{half: 1 << 20, credits: credits, ring: 1}, sizes{half: 1 << 20, credits: credits, ring: 1})
		run(t, a, b, program{total: 20_000, write: 1, reads: 1}, program{reads: 1}, 1)
		require.Equal(t, 20_000, a.messages)
	}
}

// TestRSK_6_PeersWithFewReceives runs streams between ends with all numbers of receives, which poll as
// late as they can. Every message finds a receive.
func TestRSK_6_PeersWithFewReceives(t *testing.T) {
	programs := map[string][2]program{
		"octets both ways":    {{total: 3000, write: 1, reads: 1}, {total: 3000, write: 1, reads: 1}},
		"much both ways":      {{total: 1 << 18, write: 1 << 16, reads: 1 << 16}, {total: 1 << 18, write: 1 << 16, reads: 1 << 16}},
		"at random both ways": {{total: 1 << 17, write: 5000, reads: 5000, random: true}, {total: 1 << 17, write: 5000, reads: 5000, random: true}},
		"halves that grow":    {{total: 1 << 17, write: 5000, reads: 5000, random: true, grows: 3000}, {total: 1 << 17, write: 9000, reads: 5000, random: true, grows: 999}},
		"much one way":        {{total: 1 << 19, write: 1 << 16, reads: 1 << 16}, {reads: 1 << 16}},
		"octets one way":      {{total: 3000, write: 1, reads: 1}, {reads: 1}},
	}
	counts := []int{16, 17, 64, 384, 65534}
	for name, p := range programs {
		for _, ca := range counts {
			for _, cb := range counts {
				t.Run(fmt.Sprintf("%s/%d and %d", name, ca, cb), func(t *testing.T) {
					for seed := range uint64(2) {
						a, b := join(t, sizes{half: 4096, credits: ca, ring: 8192}, sizes{half: 2048, credits: cb, ring: 4096})
						run(t, a, b, p[0], p[1], seed)
					}
				})
			}
		}
	}
}

// TestRSK_4_UnreadMessagesAddNoCredits: the limit is that which the peer was told.
func TestRSK_4_UnreadMessagesAddNoCredits(t *testing.T) {
	s := New(sizes{half: 4096, credits: 4, ring: 4096}.config(), common.private())
	s.Next()
	arrive := func(messages int) {
		for range messages {
			require.NoError(t, s.Message(wire.NewMessage(wire.OpData, 1), nil))
		}
	}
	arrive(3)
	s.Consume(2)
	w, ok := s.Next()
	require.True(t, ok)
	require.Equal(t, wire.NewMessage(wire.OpSGL, 2+4), w.Message)
	arrive(3)
	require.ErrorContains(t, s.Message(wire.NewMessage(wire.OpData, 1), nil), "more than the credits")
}
