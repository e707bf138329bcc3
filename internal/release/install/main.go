// Command install tests go install with the committed state, before it is published.
//
//	go run ./internal/release/install
//
// It runs at the top of a repository. It clones the repository, gives the commit a version, and makes Git use this clone instead of the
// published repository. Then Go installs cmd/iwarp@latest with an empty module cache, as for a user, and iwarp version must print
// that version. So Go must accept the module, and its go.mod must suffice without go.sum and replacements.
//
// The dependencies come from the module cache of the user, where go.sum has verified them. With -network they come from
// where they are published, and the checksum database verifies them. Wrong arguments end with status 2.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/goiwarp/iwarp/internal/flagsonly"
)

const (
	repository = "https://github.com/goiwarp/iwarp"
	module     = "github.com/goiwarp/iwarp"
	version    = "v0.999.0" // only the clone has it
)

func main() {
	network := flag.Bool("network", false, "take the dependencies from where they are published")
	flagsonly.Parse("install")
	printed, err := install(context.Background(), ".", *network)
	if err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		os.Exit(1)
	}
	fmt.Print(printed)
}

// install installs the command from the commit of a repository, and returns its version.
func install(ctx context.Context, root string, network bool) (string, error) {
	scratch, err := os.MkdirTemp("", "install")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	clone := filepath.Join(scratch, "clone")
	if _, err := run(ctx, nil, "git", "clone", "--quiet", "--bare", "--no-tags", root, clone); err != nil {
		return "", err
	}
	if _, err := run(ctx, nil, "git", "-C", clone, "tag", version, "HEAD"); err != nil {
		return "", err
	}
	env := []string{
		"GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=url.file://" + filepath.ToSlash(clone) + ".insteadOf", "GIT_CONFIG_VALUE_0=" + repository,
		"GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*",
		"GONOPROXY=" + module, "GONOSUMDB=" + module, "GOWORK=off", "CGO_ENABLED=0",
		// With -trimpath, packages that were built for a release need not be built again.
		"GOFLAGS=-trimpath -modcacherw",
		"GOMODCACHE=" + filepath.Join(scratch, "modules"), "GOBIN=" + filepath.Join(scratch, "bin"),
	}
	if !network {
		cache, err := run(ctx, nil, "go", "env", "GOMODCACHE", "GOPROXY")
		if err != nil {
			return "", err
		}
		dir, proxy, _ := strings.Cut(strings.TrimSpace(cache), "\n")
		env = append(env, "GOSUMDB=off", "GOPROXY=file://"+filepath.ToSlash(dir)+"/cache/download,"+proxy)
	}
	if _, err := run(ctx, env, "go", "install", module+"/cmd/iwarp@latest"); err != nil {
		return "", err
	}
	printed, err := run(ctx, nil, filepath.Join(scratch, "bin", "iwarp"), "version")
	if err == nil && !strings.HasPrefix(printed, "iwarp "+version+" ") {
		err = fmt.Errorf("iwarp version printed %q, and not %s", printed, version)
	}
	return printed, err
}

// run runs a program with additions to the environment, and returns its output.
func run(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", filepath.Base(name), strings.Join(args, " "), err)
	}
	return string(out), nil
}
