package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// build builds the program for a platform. It ignores build settings of the environment.
func (r *release) build(ctx context.Context, t target, path string) error {
	stamp := fmt.Sprintf("-s -w -X main.version=%s -X main.commit=%s -X main.commitTime=%s", r.version, r.commit, r.time.UTC().Format(time.RFC3339))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", stamp, "-o", path, "./cmd/iwarp")
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "GOOS="+t.os, "GOARCH="+t.arch, "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOEXPERIMENT=", "GOFIPS140=off",
		"GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: go build: %w\n%s", t, err, out)
	}
	return nil
}

// completions lists the shell completion scripts and their names in archives.
var completions = []struct{ shell, name string }{
	{"bash", "completions/iwarp.bash"},
	{"zsh", "completions/_iwarp"},
	{"fish", "completions/iwarp.fish"},
	{"powershell", "completions/iwarp.ps1"},
}

// manuals returns the manual pages and the completion scripts. The program of this machine writes them for all platforms.
func (r *release) manuals(ctx context.Context, scratch string) ([]file, error) {
	here := target{runtime.GOOS, runtime.GOARCH}
	program := filepath.Join(scratch, here.program())
	if err := r.build(ctx, here, program); err != nil {
		return nil, err
	}
	pages := filepath.Join(scratch, "man")
	if _, err := r.output(ctx, program, "man", pages); err != nil {
		return nil, err
	}
	var files []file
	entries, err := os.ReadDir(pages)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(pages, e.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: "man/man1/" + e.Name(), data: data})
	}
	for _, c := range completions {
		data, err := r.output(ctx, program, "completion", c.shell)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: c.name, data: data})
	}
	return files, nil
}

// output runs the program and returns what it prints.
func (r *release) output(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "SOURCE_DATE_EPOCH=") })
	cmd.Env = append(cmd.Env, "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.time.Unix(), 10))
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", filepath.Base(program), args[0], withStderr(err))
	}
	return bytes.ReplaceAll(out, []byte("\r\n"), []byte("\n")), nil
}
