package program

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/damage"
	"github.com/goiwarp/iwarp/internal/raceorder"
	"github.com/goiwarp/iwarp/internal/wiretest"
)

// everyKind is a program with a work request of each kind after a Cut.
const everyKind = `
0a register r=0 len=64
0b register r=0 how=bound len=200
0b register r=1 how=window len=64
0b register r=2 how=fast len=64
0a compare
0%c cut how=%s len=%d
0a write r=0 src=8 dst=16 len=24
0a read r=0 src=100 dst=1000 len=24
0a commit r=0 len=64
0a send src=40 len=20
0a readinv r=2 len=24
0a writeimm r=2 dst=40 len=16 imm=7
0a sendinv r=1 len=8
0a fadd r=0 dst=80 add=5
0a cswap r=0 dst=88 swap=6 mask=0xffff
0a swap r=0 dst=96 swap=9
0a imm imm=11
0a write r=0 src=8 dst=120 len=24 fence=read
0b write r=0 src=8 len=24
0b commit r=0 len=64
0b read r=0 src=40 dst=1000 len=24
0b send src=40 len=20
0a register r=5 how=fast len=32
0a register r=6 how=window len=32
0a invalidate r=5 how=work
`

// ends counts the work requests of each kind that have succeeded, and that have failed.
type ends struct{ well, failed map[iwarp.Op]int }

func newEnds() *ends { return &ends{make(map[iwarp.Op]int), make(map[iwarp.Op]int)} }

// breaks runs everyKind with one damage. It requires that the rules for faults hold, and counts how the work ended.
func (n *ends) breaks(t *testing.T, r *Runner, cfg Config, side int, how string, at int) *run {
	t.Helper()
	p, err := Parse(fmt.Sprintf(everyKind, "ab"[side], how, at))
	require.NoError(t, err)
	x, err := r.execute(New(p), cfg)
	if err != nil {
		t.Fatalf("%v: %s behind %d of side %d: %v\n%s", cfg, how, at, side, err, Draw(p.Conns, x.trace))
	}
	for _, e := range x.ends {
		for _, wc := range e.done {
			if wc.Status == iwarp.StatusSuccess {
				n.well[wc.Op]++
			} else {
				n.failed[wc.Op]++
			}
		}
	}
	return x
}

// strides is the distance in octets between one damage and the next.
var strides = map[bool]int{false: 1, true: 11}[raceorder.Enabled]

// TestDDP_60_61_VERBS_49_DamageAtEveryOctet: all work is posted, and then so many octets of one end pass. Every work
// request completes once, with success only if its effect is in place. RDMA Reads wait for a window with room for one of
// them.
func TestDDP_60_61_VERBS_49_DamageAtEveryOctet(t *testing.T) {
	cfg := Config{Network: Pipe, Window: 64}
	for how, stride := range map[string]int{damage.Reset: 1, damage.FIN: 1, damage.Corrupt: 3, damage.HalfClose: 5, damage.Stall: 41, damage.Vanish: 5} {
		for side := range 2 {
			t.Run(fmt.Sprintf("%s of side %d", how, side), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newEnds()
					r := &Runner{Hold: true, BeforeCut: func() { time.Sleep(time.Nanosecond) }}
					total := n.octets(t, r, cfg, side)
					for at := 0; at <= total; at += stride * strides {
						x := n.breaks(t, r, cfg, side, how, at)
						sent := len(x.ends[End{0, 0}].sent) + len(x.ends[End{0, 1}].sent)
						require.Equal(t, len(x.plan.Conns[0].InDoubt), sent, "nothing is refused")
					}
					n.wantBoth(t, how)
				})
			})
		}
	}
}

// octets returns how many octets a side sends in total.
func (n *ends) octets(t *testing.T, r *Runner, cfg Config, side int) int {
	t.Helper()
	return n.breaks(t, r, cfg, side, damage.Reset, 1<<20).cuts[0].Passed(side)
}

// wantBoth requires that work requests of each kind succeeded, and that some failed if octets are lost.
func (n *ends) wantBoth(t *testing.T, how string) {
	t.Helper()
	for i := range 256 {
		op := iwarp.Op(i)
		if strings.HasPrefix(op.String(), "Op(") || op == iwarp.OpRecv || op == iwarp.OpRecvImm {
			continue // there is no such Op, or it occurs only in completions
		}
		require.Positive(t, n.well[op], "%v needs a line in everyKind, and a Verb if there is none", op)
		if how != damage.Stall {
			require.Positive(t, n.failed[op], "%v", op)
		}
	}
}

// TestDDP_60_61_DamageOverTCP: the same damage after some of the octets of TCP and of TLS, in real time.
func TestDDP_60_61_DamageOverTCP(t *testing.T) {
	for _, cfg := range []Config{{Network: TCP, Window: 64}, {Network: TLS, Window: 64}} {
		n := newEnds()
		r := &Runner{Hold: true, Hosts: sharedHosts(t)}
		for side := range 2 {
			total := n.octets(t, r, cfg, side)
			for i, how := range []string{damage.Reset, damage.FIN, damage.Corrupt} {
				for at := 3 * i; at <= total; at += 23 * strides {
					n.breaks(t, r, cfg, side, how, at)
				}
			}
			for _, how := range []string{damage.HalfClose, damage.Stall, damage.Vanish} {
				n.breaks(t, r, cfg, side, how, total/2)
			}
		}
		n.wantBoth(t, damage.Reset)
	}
}

// TestDamageAtEveryDatagram: lost, corrupt or late datagrams are sent again. If an end falls silent or sends from
// another address, its peer notices after some seconds. An end that gets a forged ABORT ends at once, and its peer with
// it. The last datagrams are heartbeats, which take as long.
func TestDamageAtEveryDatagram(t *testing.T) {
	if raceorder.Enabled {
		// Go 1.26: the process crashes if two threads with the race detector run timers of one bubble at once.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	cfg := Config{Network: SCTPUDP, Window: 64}
	for how, repaired := range map[string]bool{
		damage.Corrupt: true, damage.Lose: true, damage.Stall: true,
		damage.HalfClose: false, damage.Vanish: false, damage.Address: false, damage.Abort: false,
	} {
		for side := range 2 {
			t.Run(fmt.Sprintf("%s of side %d", how, side), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newEnds()
					r := &Runner{Wait: 5 * time.Minute, ListenPacket: wiretest.NewPacketNetwork(0, 1).ListenPacket}
					total := n.breaks(t, r, cfg, side, damage.Lose, 1<<20).sockets.Passed(side)
					for at := range total { // there are about twenty: with a part of them, some kind of work might never fail
						n.breaks(t, r, cfg, side, how, at)
					}
					if repaired {
						require.Empty(t, n.failed)
					} else {
						n.wantBoth(t, how)
					}
				})
			})
		}
	}
}
