// Command release makes the files of a release: programs for all platforms, as archives and Debian packages, with their bills of
// materials and sums.
//
//	go run ./internal/release -version v0.1.0 -out dist
//
// It runs at the top of a checkout. The same commit, version and Go release produce the same octets on any machine:
// nothing in the files depends on the directory, the user, or the time of the build. docs/packaging.md describes them.
//
// If Git is not available, -commit and -time say what is built:
//
//	go run ./internal/release -version v0.1.0 -commit 1234abcd -time 2026-01-02T03:04:05Z -targets linux/arm64 -out dist
//
// Exit status 1 means that the release was not made, 2 a wrong flag.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// everyTarget lists the platforms of a release.
const everyTarget = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64,freebsd/amd64,freebsd/arm64"

// A release holds the parameters and the results of making a release.
type release struct {
	root    string // the checkout
	out     string
	version string // with the leading v
	commit  string
	time    time.Time // of all files
	targets []target
}

// A target is a platform.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// program returns the file name of the program.
func (t target) program() string {
	if t.os == "windows" {
		return "iwarp.exe"
	}
	return "iwarp"
}

// semantic matches a version of https://semver.org, with a leading v.
var semantic = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var r release
	var targets, at string
	flag.StringVar(&r.version, "version", "", "`version` of the release, such as v0.1.0")
	flag.StringVar(&r.out, "out", "dist", "`directory` for the files; it must be empty or not exist")
	flag.StringVar(&targets, "targets", everyTarget, "`platforms` to build for")
	flag.StringVar(&r.commit, "commit", "", "`commit` that is built (default: that of the checkout, which must have no changes)")
	flag.StringVar(&at, "time", "", "`time` of all files, in RFC 3339 (default: SOURCE_DATE_EPOCH in the environment, or that of the commit)")
	flag.Parse()
	err := r.parse(targets, at)
	if flag.NArg() > 0 {
		err = fmt.Errorf("%q: there are no arguments", flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(2)
	}
	if err := r.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// parse checks the flags.
func (r *release) parse(targets, at string) error {
	if !semantic.MatchString(r.version) {
		return fmt.Errorf("-version %q: it must be a semantic version with a v in front, such as v0.1.0 or v0.2.0-rc.1", r.version)
	}
	for s := range strings.SplitSeq(targets, ",") {
		if !slices.Contains(strings.Split(everyTarget, ","), s) {
			return fmt.Errorf("-targets: %q is none of %s", s, everyTarget)
		}
		system, arch, _ := strings.Cut(s, "/")
		r.targets = append(r.targets, target{system, arch})
	}
	if at == "" {
		return nil
	}
	var err error
	if r.time, err = time.Parse(time.RFC3339, at); err != nil {
		return fmt.Errorf("-time: %w", err)
	}
	return nil
}

// run determines what the flags leave open, and makes the release.
func (r *release) run(ctx context.Context) error {
	var err error
	if r.root, err = os.Getwd(); err != nil {
		return err
	}
	if err := r.describe(ctx); err != nil {
		return err
	}
	fmt.Printf("%s of commit %s, %s, with %s\n", r.version, r.commit, r.time.UTC().Format(time.RFC3339), runtime.Version())
	if err := r.make(ctx); err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(r.out, sumsName))
	fmt.Print(string(sums))
	return err
}

// describe asks Git for the commit and its time, unless the flags give them.
func (r *release) describe(ctx context.Context) error {
	if r.commit == "" {
		changes, err := r.git(ctx, "status", "--porcelain")
		if err != nil {
			return err
		}
		if changes != "" {
			return fmt.Errorf("the checkout has changes, so that no commit has what would be built; -commit overrides this:\n%s", changes)
		}
		if r.commit, err = r.git(ctx, "rev-parse", "HEAD"); err != nil {
			return err
		}
	}
	if !r.time.IsZero() {
		return nil
	}
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		var err error
		if seconds, err = r.git(ctx, "log", "-1", "--format=%ct", r.commit); err != nil {
			return err
		}
	}
	var n int64
	if _, err := fmt.Sscan(seconds, &n); err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH %q: %w", seconds, err)
	}
	r.time = time.Unix(n, 0)
	return nil
}

func (r *release) git(ctx context.Context, args ...string) (string, error) {
	out, err := r.inTree(ctx, "git", args...)
	if err != nil {
		err = fmt.Errorf("%w; without Git say what is built by -commit and -time", err)
	}
	return out, err
}

// inTree runs a program in the tree, and returns what it prints.
func (r *release) inTree(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = r.root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", program, args[0], withStderr(err))
	}
	return strings.TrimSpace(string(out)), nil
}

// withStderr adds the standard error output of a program to its error.
func withStderr(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
