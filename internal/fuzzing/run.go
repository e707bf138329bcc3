package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// errNotBuilt: the program of a target could not be built.
var errNotBuilt = errors.New("not built")

// A builder builds the test programs of packages, each once.
type builder struct {
	dir   string // where the programs are
	built map[string]string
}

// program returns the test program of the package in dir, built with flags for the go command.
func (b *builder) program(ctx context.Context, dir string, flags ...string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	key := strings.Join(append(flags, dir), " ")
	if p := b.built[key]; p != "" {
		return p, nil
	}
	p := filepath.Join(b.dir, fmt.Sprintf("%d.test", len(b.built)))
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"test", "-c", "-o", p}, flags...), ".")...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s: %w\n%s", errNotBuilt, dir, err, out)
	}
	b.built[key] = p
	return p, nil
}

// cacheDir returns where the go command keeps the interesting inputs of a target.
func (t *target) cacheDir(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-f", "{{.ImportPath}}", ".")
	cmd.Dir = t.dir
	path, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s: %w", errNotBuilt, t.dir, err)
	}
	cache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNotBuilt, err)
	}
	return filepath.Join(strings.TrimSpace(string(cache)), "fuzz", strings.TrimSpace(string(path))), nil
}

// How a target is run.
const (
	minimizeTime = "5s" // for an interesting input
	stopTime     = 20 * time.Second
)

// run fuzzes a target with one worker for a slice of time, or until the context ends.
func (t *target) run(ctx context.Context, b *builder, slice time.Duration) (result, error) {
	program, err := b.program(ctx, t.dir, "-fuzz=.")
	if err != nil {
		return result{}, err
	}
	cache, err := t.cacheDir(ctx)
	if err != nil {
		return result{}, err
	}
	// An interrupt ends the slice: at the end of -test.fuzztime, the testing package fails if it is minimizing an
	// input at that moment.
	ctx, cancel := context.WithTimeout(ctx, slice)
	defer cancel()
	w := watch{stalled: cancel, began: time.Now()}
	w.alive()
	defer w.stop()
	cmd := exec.CommandContext(ctx, program, "-test.run=^$", "-test.fuzz=^"+t.fn+"$", "-test.fuzzcachedir="+cache,
		"-test.parallel=1", "-test.fuzzminimizetime="+minimizeTime)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.dir, &w, &w
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopTime
	err = cmd.Run()
	w.stop()
	r := w.progress()
	if cmd.ProcessState == nil {
		return r, err
	}
	r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	r.finding = w.finding(err, ctx.Err() != nil)
	return r, nil
}
