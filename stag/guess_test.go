package stag

import (
	"crypto/rand"
	"encoding/binary"
	"math"
	mathrand "math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// guesses is the number of guesses of an attacker. The environment may set it.
func guesses(t *testing.T) int {
	if s := os.Getenv("IWARP_STAG_GUESSES"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		return n
	}
	return 200_000
}

// mostHits is the largest number of n tries that succeed, each with probability p, except for one in 10^9 attackers: the
// smallest k for which the tail of the binomial distribution, P(X > k), is below 10^-9.
func mostHits(n int, p float64) int {
	below := 0.0
	term := math.Exp(float64(n) * math.Log1p(-p)) // P(X = 0)
	for k := 0; ; k++ {
		below += term
		if 1-below < 1e-9 {
			return k
		}
		term *= float64(n-k) / float64(k+1) * p / (1 - p)
	}
}

func TestMostHits(t *testing.T) {
	require.Equal(t, 0, mostHits(1000, 1e-13))
	require.Equal(t, 1, mostHits(10_000, 16.0/(1<<32)))
	require.Equal(t, 4, mostHits(10_000_000, 16.0/(1<<32)))
	require.Equal(t, 1, mostHits(1, 0.5))
}

// TestAttackGuessedSTags: 16 regions of other streams of the attacker's PD live, with every right and at the TO that the
// attacker tries. It has STags of its own, as many as it likes, and it hits no more often than by chance.
func TestAttackGuessedSTags(t *testing.T) {
	const live = 16
	tries := guesses(t)
	for name, guess := range map[string]func(own []STag) func(i int) STag{
		"at random": func([]STag) func(int) STag {
			rnd := mathrand.New(mathrand.NewPCG(1, 2))
			return func(int) STag { return STag(rnd.Uint32()) }
		},
		"one after the other": func([]STag) func(int) STag { return func(i int) STag { return STag(i) } },
		"one index after the other": func([]STag) func(int) STag {
			return func(i int) STag { return STag(i<<8 | i>>24) }
		},
		"beside its own": func(own []STag) func(int) STag {
			return func(i int) STag { return own[i%len(own)] + STag(i/len(own)/2+1)*STag(1-i/len(own)%2*2) }
		},
		"as its own go on": func(own []STag) func(int) STag {
			return func(i int) STag {
				last := len(own) - 1
				step := own[last-i%last] - own[last-i%last-1]
				return own[last] + step*STag(i/last+1)
			}
		},
		"bits of its own turned": func(own []STag) func(int) STag {
			return func(i int) STag { return own[i/16%len(own)] ^ 1<<(i%16) ^ STag(i/16/len(own))<<16 }
		},
	} {
		t.Run(name, func(t *testing.T) {
			table := NewTable()
			var own []STag
			mine := make(map[STag]bool)
			for i := range 256 {
				r, err := table.Register(make([]byte, 8), Options{Access: LocalWrite | RemoteWrite, Scope: Scope{PD: 1, Stream: 7}})
				require.NoError(t, err)
				own = append(own, r.STag())
				mine[r.STag()] = true
				if i%16 == 15 {
					_, err = table.Register(make([]byte, 8), Options{Access: everyRight, Scope: Scope{PD: 1}})
					require.NoError(t, err)
				}
			}
			next, hits := guess(own), 0
			for i := range tries {
				s := next(i)
				if mine[s] {
					continue
				}
				if r, _, v := table.Pin(Scope{PD: 1, Stream: 7}, s, RemoteWrite, 0, 1); v == None {
					r.Unpin()
					hits++
				}
			}
			require.LessOrEqual(t, hits, mostHits(tries, live/float64(1<<32)))
			require.Equal(t, 256+live, table.Len())
		})
	}
}

// TestAttackGuessedOffsets: the attacker knows the STag, but not the TO that the application has chosen.
func TestAttackGuessedOffsets(t *testing.T) {
	const size = 4096
	var b [8]byte
	_, err := rand.Read(b[:])
	require.NoError(t, err)
	table, base := NewTable(), binary.BigEndian.Uint64(b[:])>>1
	r, err := table.Register(make([]byte, size), Options{Access: everyRight, BaseTO: base, Scope: Scope{PD: 1}})
	require.NoError(t, err)
	rnd := mathrand.New(mathrand.NewPCG(3, 4))
	hits := 0
	for range guesses(t) {
		if r, _, v := table.Pin(Scope{PD: 1}, r.STag(), RemoteRead, rnd.Uint64()>>1, 1); v == None {
			r.Unpin()
			hits++
		}
	}
	require.LessOrEqual(t, hits, mostHits(guesses(t), size/math.Exp2(63)))
}
