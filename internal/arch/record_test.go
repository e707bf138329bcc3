package arch

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "lower the records in testdata to what is counted now")

// A record holds numbers that are to fall, each with what it counts. The file has one number per line, followed by what
// it counts. Empty lines and lines that begin with # are comments.
type record struct {
	lines  []string
	values map[string]float64
}

func parseRecord(src string) (*record, error) {
	r := &record{lines: strings.Split(strings.TrimSuffix(src, "\n"), "\n"), values: make(map[string]float64)}
	for _, l := range r.lines {
		v, what, ok := split(l)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return nil, err
		}
		if _, twice := r.values[what]; twice {
			return nil, fmt.Errorf("%q is there twice", what)
		}
		r.values[what] = n
	}
	return r, nil
}

// split splits a line of a record. It reports false if the line has no number.
func split(line string) (value, what string, ok bool) {
	value, what, ok = strings.Cut(strings.TrimSpace(line), " ")
	return value, strings.Join(strings.Fields(what), " "), ok && value[0] != '#'
}

// check compares the record with the present counts. wrong lists what must be corrected, better what may be lowered. A
// record may lag a little behind, since otherwise every change would touch the same lines.
func (r *record) check(now map[string]float64) (wrong, better []string) {
	for _, what := range slices.Sorted(maps.Keys(now)) {
		n := round(now[what])
		old, ok := r.values[what]
		switch {
		case !ok:
			wrong = append(wrong, fmt.Sprintf("%s: %g, and there is no record", what, n))
		case n > old:
			wrong = append(wrong, fmt.Sprintf("%s: %g, more than the record of %g", what, n, old))
		case n == 0 && old > 0, old-n > max(5, old/10):
			wrong = append(wrong, fmt.Sprintf("%s: %g, far less than the record of %g: lower it with -update", what, n, old))
		case n < old:
			better = append(better, fmt.Sprintf("%s: %g, less than the record of %g: lower it with -update", what, n, old))
		}
	}
	for what := range r.values {
		if _, ok := now[what]; !ok {
			wrong = append(wrong, what+": there is a record, and nothing is counted: remove it with -update")
		}
	}
	slices.Sort(wrong)
	return wrong, better
}

// lower returns the record with the present numbers where they are lower, without numbers that are no longer counted.
func (r *record) lower(now map[string]float64) string {
	var b strings.Builder
	for _, l := range r.lines {
		value, what, ok := split(l)
		if ok {
			n, counted := now[what]
			if !counted {
				continue
			}
			if n = round(n); n < r.values[what] {
				l = strings.Replace(l, value, fmt.Sprintf("%-*g", len(value), n), 1)
			}
		}
		b.WriteString(strings.TrimRight(l, " ") + "\n")
	}
	return b.String()
}

// round keeps one decimal place.
func round(n float64) float64 { return math.Round(n*10) / 10 }

// holdRecord compares the present counts with the record of that name.
func holdRecord(t *testing.T, name string, now func(*record) map[string]float64) {
	t.Helper()
	path := filepath.Join("testdata", name)
	src, err := os.ReadFile(path)
	require.NoError(t, err)
	r, err := parseRecord(string(src))
	require.NoError(t, err)
	counted := now(r)
	if *update {
		lowered := []byte(r.lower(counted))
		if !bytes.Equal(lowered, src) {
			require.NoError(t, os.WriteFile(path, lowered, 0o644))
		}
		r, err = parseRecord(string(lowered))
		require.NoError(t, err)
	}
	wrong, better := r.check(counted)
	for _, s := range better {
		t.Log(s)
	}
	require.Empty(t, wrong, "see %s", path)
}

func TestRecordCanFail(t *testing.T) {
	r, err := parseRecord("# comment\n\n100 a b\n3.5 c\n7   d\n")
	require.NoError(t, err)
	for _, c := range []struct {
		now           map[string]float64
		wrong, better string
	}{
		{map[string]float64{"a b": 100, "c": 3.5, "d": 7}, "", ""},
		{map[string]float64{"a b": 100.04, "c": 3.5, "d": 7}, "", ""},
		{map[string]float64{"a b": 101, "c": 3.5, "d": 7}, "a b: 101, more than the record of 100", ""},
		{map[string]float64{"a b": 100, "c": 3.6, "d": 7}, "c: 3.6, more than the record of 3.5", ""},
		{map[string]float64{"a b": 90, "c": 3.5, "d": 7}, "", "a b: 90, less than the record of 100: lower it with -update"},
		{map[string]float64{"a b": 89, "c": 3.5, "d": 7}, "a b: 89, far less than the record of 100: lower it with -update", ""},
		{map[string]float64{"a b": 100, "c": 0, "d": 7}, "c: 0, far less than the record of 3.5: lower it with -update", ""},
		{map[string]float64{"a b": 100, "c": 3.5}, "d: there is a record, and nothing is counted: remove it with -update", ""},
		{map[string]float64{"a b": 100, "c": 3.5, "d": 7, "e": 0}, "e: 0, and there is no record", ""},
	} {
		wrong, better := r.check(c.now)
		require.Equal(t, c.wrong, strings.Join(wrong, "\n"))
		require.Equal(t, c.better, strings.Join(better, "\n"))
	}
}

func TestRecordIsLoweredOnly(t *testing.T) {
	r, err := parseRecord("# comment\n\n100 a b\n3.5 c\n7   d\n")
	require.NoError(t, err)
	require.Equal(t, "# comment\n\n9   a b\n3.5 c\n", r.lower(map[string]float64{"a b": 9, "c": 4}))
	_, err = parseRecord("1 a\n2 a\n")
	require.ErrorContains(t, err, "twice")
	_, err = parseRecord("x a\n")
	require.Error(t, err)
}
