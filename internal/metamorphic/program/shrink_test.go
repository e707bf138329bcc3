package program

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShrinkFindsTheCause: a Runner that spoils what it sees of each Swap over TCP makes a random program fail. The
// reduced program has a Swap, its region, and TCP beside one other Config.
func TestShrinkFindsTheCause(t *testing.T) {
	spoils := Runner{Spoil: func(c Config, o Outcome) {
		if c.Network == TCP {
			for end, lines := range o {
				o[end] = slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, "Swap: success") })
			}
		}
	}}
	var p Program
	for seed := uint64(1); ; seed++ {
		p = FromSeed(seed, Pipe, TCP, SCTPUDP)
		if f := spoils.Run(p, p.Configs); f != nil {
			require.ErrorContains(t, f, "differs from")
			break
		}
	}
	small := Shrink(p, 500, func(p Program) bool { return spoils.Run(p, p.Configs) != nil })
	require.Len(t, small.Ops, 2, "%v", small)
	require.Equal(t, Register, small.Ops[0].Verb)
	require.Contains(t, []Verb{Swap, CompareSwp}, small.Ops[1].Verb)
	require.Equal(t, Op{End: small.Ops[1].End, Verb: small.Ops[1].Verb, Region: small.Ops[1].Region}, small.Ops[1], "its parameters are the plainest")
	require.Len(t, small.Configs, 2)
	require.Equal(t, 1, small.Conns)
	finds(t, new(Runner).Run(small, small.Configs))
}

// TestShrinkStops: with a predicate that always holds, nothing is left. No more than the given number of programs are
// run.
func TestShrinkStops(t *testing.T) {
	p := Generate(rand.New(rand.NewPCG(1, 1)))
	p.Configs = []Config{{Network: TCP, NoCRC: true, Markers: "ab", ULPDU: 500, Plain: true, Reads: 1, SameCQ: true, Waits: true}}
	require.Equal(t, Program{Conns: 1, Configs: []Config{{Network: TCP}}}.String(), Shrink(p, 1000, func(Program) bool { return true }).String())
	n := 0
	require.Equal(t, p, Shrink(p, 10, func(Program) bool { n++; return false }), "nothing smaller fails")
	require.Equal(t, 10, n)
}

// TestShrinkMakesNumbersSmaller: down to the smallest with which the program fails.
func TestShrinkMakesNumbersSmaller(t *testing.T) {
	p := Program{Conns: 1, Ops: []Op{{Verb: Write, Len: 1000, Src: 7, Fence: "read", Inline: true}}}
	small := Shrink(p, 1000, func(p Program) bool { return len(p.Ops) == 1 && p.Ops[0].Len >= 123 })
	require.Equal(t, []Op{{Verb: Write, Len: 123}}, small.Ops)
}

func TestKindOfAFailure(t *testing.T) {
	kind := func(c Config, spoil bool) string {
		r := Runner{Spoil: func(c Config, o Outcome) {
			if spoil && c.Network == TCP {
				clear(o)
			}
		}}
		f := r.Run(Program{Conns: 1}, []Config{{Network: Pipe}, c})
		require.NotNil(t, f)
		return f.Kind()
	}
	require.Equal(t, kind(Config{Network: TCP}, true), kind(Config{Network: TCP, Plain: true}, true))
	require.NotEqual(t, kind(Config{Network: TCP}, true), kind(Config{Network: TCP, Reads: -2}, false))
}
