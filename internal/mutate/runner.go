package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/mutate/list"
)

// parallel is how many mutations are compiled and run at a time.
const parallel = 2

// testTimeout bounds one test binary; killAfter is for one that ignores it.
const (
	testTimeout = 60 * time.Second
	killAfter   = 75 * time.Second
)

// A verdict tells what came of a mutation.
type verdict string

const (
	noticed  verdict = "noticed"
	survived verdict = "SURVIVED"
	bad      verdict = "BAD" // it does not apply or compile, or its test fails without it
)

type result struct {
	m       list.Mutation
	verdict verdict
	output  string // why it was not noticed
	took    time.Duration
}

// A runner builds and runs tests, of the tree as it is and with mutations.
type runner struct {
	ctx  context.Context // ends the run
	root string
	dir  string // temporary

	mu       sync.Mutex
	baseline map[string]error // of each test without a mutation
}

func newRunner(ctx context.Context, root string) *runner {
	return &runner{ctx: ctx, root: root, baseline: make(map[string]error)}
}

// run runs all mutations and hands each result to report as it comes, one at a time.
func (r *runner) run(ms []list.Mutation, report func(result)) error {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r.dir = dir

	if err := r.buildBaselines(ms); err != nil {
		return err
	}
	var (
		wg        sync.WaitGroup
		reporting sync.Mutex
	)
	slots := make(chan struct{}, parallel)
	for i, m := range ms {
		slots <- struct{}{}
		if r.ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			start := time.Now()
			v, out := r.one(fmt.Sprintf("m%d", i), m)
			took := time.Since(start)
			if r.ctx.Err() != nil {
				return // what was ended says nothing
			}
			reporting.Lock()
			defer reporting.Unlock()
			report(result{m: m, verdict: v, output: out, took: took})
		})
	}
	wg.Wait()
	return r.ctx.Err()
}

// buildBaselines builds the unchanged tests of every package that is needed.
func (r *runner) buildBaselines(ms []list.Mutation) error {
	for _, m := range ms {
		bin := r.baselineBinary(m.Pkg)
		if _, err := os.Stat(bin); err == nil {
			continue
		}
		if out, err := r.build(bin, m.Pkg, ""); err != nil {
			return fmt.Errorf("the tests of %s do not build: %w\n%s", m.Pkg, err, out)
		}
	}
	return nil
}

func (r *runner) baselineBinary(pkg string) string {
	return filepath.Join(r.dir, "base_"+strings.ReplaceAll(pkg, "/", "_")+".test")
}

// one runs one mutation; name is unique to it.
func (r *runner) one(name string, m list.Mutation) (verdict, string) {
	if err := r.passesUnchanged(m); err != nil {
		return bad, err.Error()
	}
	overlay, err := r.writeOverlay(name, m)
	if err != nil {
		return bad, err.Error()
	}
	bin := filepath.Join(r.dir, name+".test")
	defer os.Remove(bin)
	if out, err := r.build(bin, m.Pkg, overlay); err != nil {
		return bad, "it does not compile:\n" + out
	}
	if out, err := r.runTest(bin, m); err == nil {
		return survived, out
	}
	return noticed, ""
}

// passesUnchanged runs the test of m without the mutation, once for each test.
func (r *runner) passesUnchanged(m list.Mutation) error {
	key := m.Target()
	r.mu.Lock()
	defer r.mu.Unlock()
	err, known := r.baseline[key]
	if !known {
		out, runErr := r.runTest(r.baselineBinary(m.Pkg), m)
		switch {
		case runErr != nil:
			err = fmt.Errorf("the test fails without the mutation:\n%s", out)
		case !strings.Contains(out, "--- PASS: "+m.Test+" "):
			err = fmt.Errorf("the test did not run:\n%s", out)
		}
		r.baseline[key] = err
	}
	return err
}

// writeOverlay writes the changed file and the overlay that puts it in place.
func (r *runner) writeOverlay(name string, m list.Mutation) (string, error) {
	original := filepath.Join(r.root, filepath.FromSlash(m.File))
	src, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	changed, err := m.Apply(string(src))
	if err != nil {
		return "", err
	}
	replacement := filepath.Join(r.dir, name+".go")
	if err := os.WriteFile(replacement, []byte(changed), 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: replacement}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(r.dir, name+".json")
	return file, os.WriteFile(file, overlay, 0o600)
}

// build compiles the tests of a package; overlay may be empty. Without symbols for a debugger
// it takes two thirds of the time.
func (r *runner) build(bin, pkg, overlay string) (string, error) {
	// A package of a nested module does not build from the root.
	cmd := exec.CommandContext(r.ctx, "go", "test", "-c", "-ldflags=-s -w", "-o", bin, "-overlay", overlay, ".")
	cmd.Dir = filepath.Join(r.root, filepath.FromSlash(pkg))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// runTest runs the test of m from a test binary, as go test would.
func (r *runner) runTest(bin string, m list.Mutation) (string, error) {
	ctx, cancel := context.WithTimeout(r.ctx, killAfter)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, "-test.run", "^"+m.Test+"$", "-test.v", "-test.count=1",
		"-test.timeout", testTimeout.String())
	cmd.Dir = filepath.Join(r.root, filepath.FromSlash(m.Pkg))
	out, err := cmd.CombinedOutput()
	return string(out), err
}
