package program

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/raceorder"
)

// here are the networks that every machine supports.
var here = []string{Pipe, TCP, TLS, SCTPUDP}

// finds fails the test with everything that a Runner has found.
func finds(t *testing.T, f *Failure) {
	t.Helper()
	if f != nil {
		p := f.Program
		p.Configs = f.Configs
		t.Fatalf("%v\n\n%v\n%s", f, p, Draw(p.Conns, f.Trace))
	}
}

// programs is how many random programs a test runs: fewer with the race detector, which takes five times as long.
var programs = map[bool]int{false: 100, true: 30}[raceorder.Enabled]

// TestVERBS_49_70_RandomPrograms runs the same programs each time, over every network that needs only this process, with
// random framing options. No completion is lost, doubled or out of order, and memory agrees with the model. The command
// runs other programs, and for longer.
func TestVERBS_49_70_RandomPrograms(t *testing.T) {
	var r Runner
	for seed := range uint64(programs) {
		p := FromSeed(seed, here...)
		finds(t, r.Run(p, p.Configs))
	}
}

// TestPrograms runs the programs of testdata/programs. The command is
//
//	run [CONFIG; CONFIG; ...]
//
// followed by the program, and the output is what each end has observed where that is determined.
func TestPrograms(t *testing.T) {
	all := "pipe; pipe nocrc markers=ab ulpdu=96; tcp; tcp waits; tcp plain markers=ab ulpdu=500; tls; sctp+udp; sctp+udp waits shuffle=5"
	datadriven.Walk(t, "testdata/programs", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			p, err := Parse(d.Input)
			if err != nil {
				return err.Error() + "\n"
			}
			for c := range strings.SplitSeq(all, ";") {
				cfg, err := ParseConfig(c)
				require.NoError(t, err)
				p.Configs = append(p.Configs, cfg)
			}
			var seen Outcome
			r := Runner{Spoil: func(_ Config, o Outcome) { seen = o }}
			finds(t, r.Run(p, p.Configs))
			return outcomeText(seen)
		})
	})
}

func outcomeText(o Outcome) string {
	var b strings.Builder
	byText := func(a, b End) int { return strings.Compare(a.String(), b.String()) }
	for _, end := range slices.SortedFunc(maps.Keys(o), byText) {
		for _, line := range o[end] {
			fmt.Fprintf(&b, "%v: %s\n", end, line)
		}
	}
	return b.String()
}

func TestProgramsAreText(t *testing.T) {
	for seed := range uint64(50) {
		p := FromSeed(seed, networks...)
		again, err := Parse(p.String())
		require.NoError(t, err)
		require.Equal(t, p, again, "what was written is read")
	}
	p, err := Parse("# a comment\n\n0a write # another one\n")
	require.NoError(t, err)
	require.Equal(t, Program{Conns: 1, Ops: []Op{{Verb: Write}}}, p)
}

func TestProgramsThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"0c write":              "no end of a connection",
		"write":                 "want an end and a verb",
		"0a scribble":           `there is no verb "scribble"`,
		"0a write how=well":     "want one of []",
		"0a cut how=well":       "want one of [reset fin corrupt stall half vanish lose address abort]",
		"0a write len=-1":       "invalid syntax",
		"0a write size=1":       `there is no parameter "size=1"`,
		"0a write fence=garden": "want read or local",
		"1a write":              "there are 1 connections",
		"connections 5":         "want 1 to 4",
		"connections":           "invalid syntax",
		"config udp":            "want one of [pipe tcp",
		"config tcp quick":      `there is no option "quick"`,
		"config tcp ulpdu=x":    "invalid syntax",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestConfigThatCannotBeUsedIsSkipped(t *testing.T) {
	var skipped []Config
	r := Runner{Skipped: func(c Config, why error) {
		require.ErrorIs(t, why, ErrNotHere)
		skipped = append(skipped, c)
	}}
	configs := []Config{{Network: Records}, {Network: Pipe}}
	finds(t, r.Run(Program{Conns: 1}, configs))
	require.Equal(t, configs[:1], skipped)
}

// TestDamagedDatagramsAreOfOneConnection: other connections would also lose datagrams, which the model does not know of.
func TestDamagedDatagramsAreOfOneConnection(t *testing.T) {
	p, err := Parse("connections 2\n1b cut how=half\n0a send len=3")
	require.NoError(t, err)
	var why error
	r := Runner{Skipped: func(_ Config, err error) { why = err }}
	finds(t, r.Run(p, []Config{{Network: SCTPUDP}}))
	require.ErrorContains(t, why, "share the sockets")
}

// TestGeneratorKnowsEveryVerb: it uses everything that a program can express.
func TestGeneratorKnowsEveryVerb(t *testing.T) {
	seen := make(map[string]bool)
	for seed := range uint64(300) {
		for _, o := range FromSeed(seed, Pipe).Ops {
			seen[string(o.Verb)+" "+o.how()] = true
		}
	}
	for _, v := range verbs {
		for _, how := range append(slices.Clone(hows[v]), "")[:max(len(hows[v]), 1)] {
			require.True(t, seen[string(v)+" "+how], "%s %s", v, how)
		}
	}
}
