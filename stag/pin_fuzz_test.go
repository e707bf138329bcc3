package stag

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// slowPin is what RFC 5040 section 8.1.1 and RFC 5041 section 7.1 say, in numbers
// without a limit.
func slowPin(r *Region, valid bool, scope Scope, s STag, want Access, to uint64, n uint32) Violation {
	num := func(x uint64) *big.Int { return new(big.Int).SetUint64(x) }
	end := new(big.Int).Add(num(to), num(uint64(n)))
	limit := new(big.Int).Add(num(r.base), num(r.size))
	top := new(big.Int).Lsh(big.NewInt(1), 64)
	switch {
	case s != r.stag, !valid:
		return InvalidSTag
	case scope.PD != r.scope.PD:
		return NotAssociated
	case r.scope.Stream != 0 && scope.Stream != r.scope.Stream:
		return NotAssociated
	case want&^r.access != 0:
		return AccessDenied
	case end.Cmp(top) >= 0:
		return Wrap
	case num(to).Cmp(num(r.base)) < 0, end.Cmp(limit) > 0:
		return Bounds
	}
	return None
}

func FuzzPin(f *testing.F) {
	const max = ^uint64(0)
	f.Add(uint64(0), int64(8), uint8(7), uint32(0), uint32(0), uint8(2), uint64(0), uint32(8), false)
	f.Add(uint64(1000), int64(24), uint8(15), uint32(7), uint32(0), uint8(4), uint64(1023), uint32(1), false)
	f.Add(uint64(1000), int64(24), uint8(15), uint32(7), uint32(0), uint8(4), uint64(999), uint32(1), false)
	f.Add(uint64(1000), int64(24), uint8(15), uint32(8), uint32(0), uint8(4), uint64(1000), uint32(1), false)
	f.Add(max-8, int64(8), uint8(7), uint32(0), uint32(0), uint8(2), max-1, uint32(1), false)
	f.Add(max-8, int64(8), uint8(7), uint32(0), uint32(0), uint8(2), max-1, uint32(2), false)
	f.Add(max-8, int64(8), uint8(7), uint32(0), uint32(0), uint8(2), max-3, uint32(8), false)
	f.Add(uint64(1<<63), int64(1<<62), uint8(7), uint32(0), uint32(1), uint8(2), uint64(1<<63), uint32(8), false)
	f.Add(uint64(0), int64(8), uint8(7), uint32(0), uint32(0), uint8(2), uint64(0), uint32(8), true)
	f.Fuzz(func(t *testing.T, base uint64, size int64, access uint8, stream, flip uint32, want uint8,
		to uint64, n uint32, dead bool,
	) {
		table := NewTable()
		r, err := table.RegisterBuffer(sized(size), Options{
			Access: Access(access), BaseTO: base, Scope: Scope{PD: 1, Stream: uint64(stream)},
		})
		if err != nil || n == 0 {
			return
		}
		if dead {
			r.kill()
		}
		scope, s := Scope{PD: 1, Stream: 7}, r.stag^STag(flip)
		expect := slowPin(r, !dead, scope, s, Access(want), to, n)
		got, off, v := table.Pin(scope, s, Access(want), to, int(n))
		require.Equal(t, expect, v)
		if v != None {
			require.Nil(t, got)
			require.Zero(t, r.state.Load()&^invalid, "a refused access leaves no pin")
			return
		}
		require.Equal(t, to-base, off)
		require.Equal(t, onePin, r.state.Load())
		got.Unpin()
	})
}
