package ddp

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/stag"
)

const canary = 0x5a

// guarded returns n octets in the middle of a larger array, and a check that their
// surroundings are untouched.
func guarded(n int) (mem []byte, intact func() bool) {
	all := bytes.Repeat([]byte{canary}, 3*n)
	outside := bytes.Repeat([]byte{canary}, n)
	return all[n : 2*n : 2*n], func() bool {
		return bytes.Equal(all[:n], outside) && bytes.Equal(all[2*n:], outside)
	}
}

// A fuzzScene is a stream with one open region, one that it may not touch, and one
// posted buffer in each of two queues. Where the input says STag 1 or 2, the scene's STags
// are used, because no fuzzer would guess them.
type fuzzScene struct {
	*conversation
	mine, foreign *stag.Region
	closed        []byte
	intact        []func() bool
}

func newFuzzScene(t *testing.T) *fuzzScene {
	f := &fuzzScene{conversation: converse(t, 8)}
	mine, intact := guarded(64)
	f.intact = append(f.intact, intact)
	f.closed = bytes.Repeat([]byte{canary}, 64)
	var err error
	f.mine, err = f.table.Register(mine, stag.Options{
		Access: stag.LocalWrite | stag.RemoteWrite, BaseTO: 1<<64 - 80, Scope: stag.Scope{PD: 1},
	})
	require.NoError(t, err)
	f.foreign, err = f.table.Register(f.closed, stag.Options{
		Access: stag.LocalWrite | stag.Remote, BaseTO: 1<<64 - 80, Scope: carol,
	})
	require.NoError(t, err)
	for qn := range QN(2) {
		buf, intact := guarded(32)
		f.intact = append(f.intact, intact)
		f.post(qn, buf[:13], buf[13:])
	}
	return f
}

// aim turns the STags 1 and 2 of a tagged segment into the scene's STags.
func (f *fuzzScene) aim(segment []byte) []byte {
	if IsTagged(segment) && len(segment) >= TaggedLen {
		switch binary.BigEndian.Uint32(segment[2:]) {
		case 1:
			binary.BigEndian.PutUint32(segment[2:], uint32(f.mine.STag()))
		case 2:
			binary.BigEndian.PutUint32(segment[2:], uint32(f.foreign.STag()))
		}
	}
	return segment
}

// Whatever comes, in whatever order, nothing is placed outside of what was opened.
// The input is a list of segments, each after an octet of length and one that says
// how far out of order it comes.
func FuzzSegments(f *testing.F) {
	add := func(segments ...[]byte) {
		var in []byte
		for _, b := range segments {
			in = append(append(in, byte(len(b)), 0), b...)
		}
		f.Add(in)
	}
	add(tagged(true, 1, 1<<64-80, octets(64)), untagged(false, 0, 1, 0, octets(20)), untagged(true, 0, 1, 20, octets(12)))
	add(tagged(true, 1, 1<<64-81, octets(64)))
	add(tagged(true, 1, 1<<64-8, octets(16)))
	add(tagged(true, 2, 1<<64-80, octets(1)))
	add(untagged(true, 1, 1, 0xffffffff, octets(33)))
	add(untagged(true, 1, 1, 0xffffffff, nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		scene := newFuzzScene(t)
		for seq := uint64(0); len(in) >= 2; seq++ {
			n, skew := min(int(in[0]), len(in)-2), uint64(in[1]%4)
			segment := scene.aim(bytes.Clone(in[2 : 2+n]))
			in = in[2+n:]
			_ = scene.s.Segment(seq+skew, segment)
		}
		for _, intact := range scene.intact {
			require.True(t, intact(), "octets around a buffer are untouched")
		}
		require.Equal(t, bytes.Repeat([]byte{canary}, 64), scene.closed, "memory of another PD is untouched")
	})
}
