package target

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/stag"
)

// A choice takes an attacker's random choices from an input, an octet for each. After its end they are pseudo-random,
// but always the same: to choose among a number that is no power of two, package rand may try again.
type choice struct {
	in   []byte
	rest *rand.PCG
}

func (c *choice) Uint64() (v uint64) {
	if len(c.in) == 0 {
		return c.rest.Uint64()
	}
	v, c.in = uint64(c.in[0])*0x0101010101010101, c.in[1:]
	return v
}

// FuzzNVME_90_HostileHost: whatever a host that may use the target does, the target changes only those of the host's
// octets that it was told to write, and of its own only those of its name space. It answers in well-formed responses,
// and keeps nothing of the host. The input is the choices of an attacker (see world.attack).
func FuzzNVME_90_HostileHost(f *testing.F) {
	for kind := range uint64(40) {
		in := make([]byte, 3000)
		rnd := rand.New(rand.NewPCG(90, kind))
		for i := range in {
			in[i] = byte(rnd.Uint32())
		}
		in[0] = byte(kind * 256 / 40) // which attack it is
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 4096 {
			return
		}
		virtual(t, func(t *testing.T) {
			rnic, err := iwarp.Open(nil)
			require.NoError(t, err)
			b, err := backend.NewMemory(backend.MemoryConfig{Size: 1 << 20, BlockSize: lba})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, rnic.Close()) })
			w := newWorld(t, "pipe", &Config{RNIC: rnic, Limits: Limits{QueueMemory: 1 << 20, Memory: 2 << 20, Workers: 1}}, b)
			canary := pattern(lba, 7)
			region, err := w.target.pd.RegisterMR(canary, stag.LocalWrite, nil)
			require.NoError(t, err)
			before := w.remains(t)
			w.attack(t, rand.New(&choice{in, rand.NewPCG(90, uint64(len(in)))}), region.STag(), make(map[capsule.Status]int))
			require.Equal(t, before, w.remains(t), "something is left of the host")
			require.Equal(t, pattern(lba, 7), canary)
			require.NoError(t, region.Close())
		})
	})
}
