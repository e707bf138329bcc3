package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goiwarp/iwarp/internal/metamorphic/program"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProgramsRun(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(&out, options{seed: 5, programs: 3, networks: "pipe,tcp,records"}))
	require.Contains(t, out.String(), "skipped: set-up: network records")
	require.Regexp(t, "seeds 5 to 7: 3 programs, 9 runs in .*, no finding", out.String())
}

func TestTimeIsBounded(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(&out, options{length: time.Nanosecond, networks: "pipe"}))
	require.Contains(t, out.String(), "no finding")
}

// TestReport: a failing program is reduced, drawn, and written to a file that can be replayed.
func TestReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "failure.txt")
	o := options{save: file, shrink: 300, tries: 1, times: 2, replay: file, networks: "pipe"}
	// An outcome that lacks an end differs between Configs: this end is removed from what is seen.
	var out strings.Builder
	spoils := newRunner(&out, o)
	spoils.Spoil = func(c program.Config, seen program.Outcome) {
		if c.Network == program.TCP {
			delete(seen, program.End{Conn: 0, Side: 1})
		}
	}
	p := program.FromSeed(3, program.Pipe, program.TCP)
	f := spoils.run(p)
	require.NotNil(t, f)
	require.Error(t, report(&out, o, spoils, f))
	for _, want := range []string{"connections 1\nconfig pipe\nconfig tcp\n", "differs from", "0a      ", "-replay " + file} {
		require.Contains(t, out.String(), want)
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	small, err := program.Parse(string(text))
	require.NoError(t, err)
	require.Empty(t, small.Ops, "it fails without a line")

	out.Reset()
	require.ErrorContains(t, replay(&out, o, spoils), "the program fails")
	require.Contains(t, out.String(), "differs from")
	out.Reset()
	require.NoError(t, run(&out, o))
	require.Equal(t, "no finding\n", out.String())
	o.replay += ".no"
	require.ErrorIs(t, run(&out, o), os.ErrNotExist)
}

// TestNothingHasRun: a machine that supports none of the networks finds nothing, which does not mean that nothing is
// wrong.
func TestNothingHasRun(t *testing.T) {
	var out strings.Builder
	require.ErrorContains(t, run(&out, options{programs: 2, networks: program.Records}), "no program has run")
	require.Contains(t, out.String(), "skipped: set-up: network records")
	require.NotContains(t, out.String(), "no finding")

	file := filepath.Join(t.TempDir(), "saved.txt")
	require.NoError(t, os.WriteFile(file, []byte(program.FromSeed(1, program.Records).String()), 0o600))
	out.Reset()
	require.ErrorContains(t, run(&out, options{replay: file, times: 2}), "no program has run")
	require.NotContains(t, out.String(), "no finding")
}

// TestFlagsAreChecked: before anything runs, since an unknown network would look like a failing program.
func TestFlagsAreChecked(t *testing.T) {
	good := options{programs: 1, times: 1, networks: program.EveryNetwork}
	require.NoError(t, good.check())
	for want, change := range map[string]func(*options){
		"want -programs": func(o *options) { o.programs = 0 },
		"none negative":  func(o *options) { o.length = -1 },
		"or -replay":     func(o *options) { o.times = 0 },
		`"udp" is none`:  func(o *options) { o.networks = "tcp,udp" },
		`"" is none`:     func(o *options) { o.networks = "" },
		`"records" is`:   func(o *options) { o.networks = program.Records },
	} {
		bad := good
		change(&bad)
		require.ErrorContains(t, bad.check(), want)
	}
}
