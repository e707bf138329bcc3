package program

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/damage"
)

// damaged is a program whose connection is damaged after some octets.
const damaged = `
0b register r=0 len=2000
0a write len=900
0a compare
0%c cut how=%s len=%d
0a write len=900
0a send len=300
0b send len=300
0a read len=400
0a drain
0a fadd
`

// sharedHosts are two hosts that many programs use.
func sharedHosts(t *testing.T) *[2]*Host {
	var hosts [2]*Host
	for i := range hosts {
		h, err := NewHost(&iwarp.Config{})
		require.NoError(t, err)
		hosts[i] = h
		t.Cleanup(func() { require.NoError(t, h.Close()) })
	}
	return &hosts
}

// TestDamage: whatever happens to a connection, the rules for faults hold, and hosts that live on keep nothing of it.
func TestDamage(t *testing.T) {
	var tally Tally
	r := Runner{Hosts: sharedHosts(t), Tally: &tally}
	runs := 0
	for _, how := range []string{damage.Reset, damage.FIN, damage.Corrupt, damage.Stall, damage.HalfClose, damage.Vanish} {
		for _, octets := range []int{0, 20, 400} {
			for _, side := range []int{0, 1} {
				p, err := Parse(fmt.Sprintf(damaged, "ab"[side], how, octets))
				require.NoError(t, err)
				finds(t, r.Run(p, []Config{{Network: Pipe}, {Network: TCP, SameCQ: true}, {Network: TLS}, {Network: SCTPUDP}}))
				runs += 4
			}
		}
	}
	sum, faults, lost, doubled := tally.Sum()
	require.Zero(t, lost+doubled)
	require.Equal(t, runs/6, faults["cut corrupt"])
	require.Equal(t, sum.Due, sum.Octets)
	require.Positive(t, sum.Octets)
	require.Positive(t, sum.Posted[iwarp.OpFetchAdd])
}

// TestWhatIsLeftOutIsNoticed: a lost completion, and an octet that is not compared.
func TestWhatIsLeftOutIsNoticed(t *testing.T) {
	p, err := Parse("0b register r=0 len=100\n0a write len=100\n0a send len=10\n")
	require.NoError(t, err)
	once := false
	var tally Tally
	r := Runner{Tally: &tally, Lose: func(iwarp.WC) bool {
		first := !once
		once = true
		return first
	}}
	f := r.Run(p, []Config{{Network: Pipe}})
	require.NotNil(t, f)
	require.ErrorIs(t, f.Err, ErrLost)
	_, _, lost, _ := tally.Sum()
	require.Equal(t, 1, lost)

	once = false
	r = Runner{Blind: func(b []byte) []byte {
		if once || len(b) == 0 {
			return b
		}
		once = true
		return b[:len(b)-1]
	}}
	f = r.Run(p, []Config{{Network: Pipe}})
	require.NotNil(t, f)
	require.Contains(t, f.Err.Error(), "octets were verified of")
}
