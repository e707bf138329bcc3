package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The limits for one target in one run of the program.
const (
	corpusTries  = 60       // inputs that are tried, the smallest ones
	corpusInputs = 12       // inputs that are taken
	corpusOctets = 64 << 10 // octets of these inputs
)

// A candidate is an input in the cache of the go command.
type candidate struct {
	name string
	data []byte
}

// takeCorpus takes inputs for all targets.
func takeCorpus(ctx context.Context, w io.Writer, b *builder, targets []target) error {
	for _, t := range targets {
		taken, err := t.takeCorpus(ctx, b)
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		if taken > 0 {
			fmt.Fprintf(w, "%s: %d inputs\n", t.name, taken)
		}
	}
	return nil
}

// takeCorpus copies inputs into testdata that run statements which the seeds and the earlier inputs do not run.
func (t *target) takeCorpus(ctx context.Context, b *builder) (taken int, err error) {
	cache, err := t.cacheDir(ctx)
	if err != nil {
		return 0, err
	}
	list, err := candidates(filepath.Join(cache, t.fn))
	if err != nil || len(list) == 0 {
		return 0, err
	}
	program, err := b.program(ctx, t.dir, "-cover", "-coverpkg=./...,github.com/goiwarp/iwarp/...")
	if err != nil {
		return 0, err
	}
	dir := filepath.Join(t.dir, "testdata", "fuzz", t.fn)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	defer os.Remove(dir) // if it is empty
	covered, err := t.covers(ctx, b.dir, program, "")
	if err != nil {
		return 0, err
	}
	size := 0
	for _, c := range list {
		if taken == corpusInputs || size+len(c.data) > corpusOctets {
			break
		}
		file := filepath.Join(dir, c.name)
		if _, err := os.Stat(file); err == nil {
			continue // it is there already
		}
		if err := os.WriteFile(file, c.data, 0o644); err != nil {
			return taken, err
		}
		runs, err := t.covers(ctx, b.dir, program, c.name)
		if err == nil && adds(covered, runs) {
			taken, size = taken+1, size+len(c.data)
			maps.Copy(covered, runs)
			continue
		}
		if err := errors.Join(err, os.Remove(file)); err != nil {
			return taken, err
		}
	}
	return taken, nil
}

// candidates returns the smallest inputs of a directory.
func candidates(dir string) (list []candidate, err error) {
	files, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		list = append(list, candidate{f.Name(), data})
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(len(a.data), len(b.data)), cmp.Compare(a.name, b.name))
	})
	return list[:min(len(list), corpusTries)], nil
}

// covers runs the seeds of a target, or only the seed with that name, and returns the statements that have run.
func (t *target) covers(ctx context.Context, dir, program, seed string) (map[string]bool, error) {
	profile := filepath.Join(dir, "coverage")
	run := "^" + t.fn + "$"
	if seed != "" {
		run += "/^" + seed + "$"
	}
	cmd := exec.CommandContext(ctx, program, "-test.run="+run, "-test.coverprofile="+profile)
	cmd.Dir = t.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	text, err := os.ReadFile(profile)
	return parseProfile(string(text)), err
}

// parseProfile returns the statements of a coverage profile that have run.
func parseProfile(text string) map[string]bool {
	runs := make(map[string]bool)
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 3 && f[2] != "0" {
			runs[f[0]] = true
		}
	}
	return runs
}

// adds reports whether runs contains a statement that is not covered.
func adds(covered, runs map[string]bool) bool {
	for s := range runs {
		if !covered[s] {
			return true
		}
	}
	return false
}
