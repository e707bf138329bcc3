package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp/internal/damage"
	"github.com/goiwarp/iwarp/internal/metamorphic/program"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// short are the options of a short run.
var short = options{length: time.Second, seed: 1, qps: 16, networks: "pipe,tcp,tls,sctp+udp"}

// runShort runs with these options, and returns what was printed.
func runShort(o options) (string, error) {
	var out strings.Builder
	err := run(&out, o)
	return out.String(), err
}

func TestShortRunFindsNothing(t *testing.T) {
	o := short
	o.verbose = true
	out, err := runShort(o)
	require.NoError(t, err, "%s", out)
	require.Contains(t, out, "seed 1, 16 queue pairs")
	require.Regexp(t, `(?m)^after round 5: `, out)
	require.Regexp(t, `(?m)^  lost +0$`, out)
	require.Regexp(t, `(?m)^  doubled +0$`, out)
	require.Regexp(t, `(?m)^findings +0$`, out)
}

// TestSabotageIsFound: a run must not overlook it.
func TestSabotageIsFound(t *testing.T) {
	for what, want := range map[string]string{
		loseCompletion: `(?m)^  lost +1$`,
		skipOctet:      `octets were verified of`,
		leakSTag:       `1 STags are left`,
	} {
		t.Run(what, func(t *testing.T) {
			o := short
			o.length, o.networks, o.sabotage = 500*time.Millisecond, "pipe", what
			out, err := runShort(o)
			require.ErrorContains(t, err, "findings")
			require.Regexp(t, want, out)
		})
	}
}

// TestRunWithoutAProgramIsNone: such a run has tried nothing.
func TestRunWithoutAProgramIsNone(t *testing.T) {
	o := short
	o.length = time.Nanosecond
	out, err := runShort(o)
	require.ErrorContains(t, err, "1 findings")
	require.Contains(t, out, "finding: no program has run")
}

func TestNetworkThatIsNotThereIsLeftOut(t *testing.T) {
	var out strings.Builder
	s := newSoak(&out, short)
	s.skip(program.Config{Network: program.SCTP}, program.ErrNotHere)
	s.skip(program.Config{Network: program.SCTP}, program.ErrNotHere)
	require.Equal(t, "left out: cannot be used here\n", out.String())
}

func TestDraw(t *testing.T) {
	networks := strings.Split(program.EveryNetwork, ",")
	damages := make(map[string]bool)
	over := make(map[string]bool)
	for seed := range uint64(300) {
		j := draw(seed, networks)
		require.Equal(t, j, draw(seed, networks), "it depends on the seed only")
		require.LessOrEqual(t, j.slots(), minQPs-sharedQPs)
		over[j.config.Network] = true
		for _, o := range j.program.Ops {
			if o.Verb == program.Cut {
				damages[o.How] = true
				require.False(t, o.How == damage.Corrupt && j.config.NoCRC, "only a CRC tells")
			}
		}
		again, err := program.Parse(j.program.String())
		require.NoError(t, err)
		require.Equal(t, j.program, again, "it can be replayed")
	}
	require.Len(t, damages, len(cuts))
	require.Len(t, over, len(networks))
}

func TestAge(t *testing.T) {
	octets := []byte{254, 255, 0, 1}
	n, err := checkAge(octets, 254, 257)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	n, err = checkAge(octets, 255, 257)
	require.ErrorContains(t, err, "octet 0 is 0xfe")
	require.Zero(t, n)
	_, err = checkAge(octets, 254, 256)
	require.ErrorContains(t, err, "octet 3 is 0x01")
	n, err = checkAge(octets, 0, 256)
	require.NoError(t, err)
	require.Zero(t, n, "each octet could be right")
}

func TestGrowth(t *testing.T) {
	before := usage{heap: 1 << 20, goroutines: 3, descriptors: 5}
	require.NoError(t, usage{heap: before.heap + heapGrowth, goroutines: 3, descriptors: 5}.growth(before))
	require.ErrorContains(t, usage{goroutines: 4, descriptors: 5}.growth(before), "1 goroutines are left")
	require.ErrorContains(t, usage{goroutines: 3, descriptors: 7}.growth(before), "2 descriptors are left")
	require.ErrorContains(t, usage{heap: before.heap + heapGrowth + 1}.growth(before), "the heap has grown by 16777217 octets")
}

func TestFlagsAreChecked(t *testing.T) {
	o := short
	require.NoError(t, o.check())
	for _, change := range []func(*options){
		func(o *options) { o.length = 0 },
		func(o *options) { o.qps = minQPs - 2 },
		func(o *options) { o.qps = mostQPs + 2 },
		func(o *options) { o.qps = 17 },
		func(o *options) { o.networks = "tcp,udp" },
		func(o *options) { o.sabotage = "everything" },
	} {
		bad := o
		change(&bad)
		require.Error(t, bad.check())
	}
}
