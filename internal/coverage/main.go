// Command coverage reports how much of the protocol packages the tests execute.
//
//	go run ./internal/coverage [-floor 90] [-lines]
//
// It runs the tests of each of these packages, and those of the root package, and counts the statements of each package that its own tests or
// those of the root package execute. It fails if a package has less than the floor. With -lines it lists the statements that
// are not executed. Wrong arguments end with status 2.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goiwarp/iwarp/internal/flagsonly"
)

const module = "github.com/goiwarp/iwarp"

// packages are the packages whose coverage has a floor.
var packages = []string{"mpa", "ddp", "rdmap", "stag", "commit", "transport/sctp", "solicit", "regionkey", "cm", "rma"}

func main() {
	floor := flag.Float64("floor", 90, "`percent` of the statements of each package")
	lines := flag.Bool("lines", false, "list what is not executed")
	flagsonly.Parse("coverage")
	if err := run(os.Stdout, *floor, *lines); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, floor float64, lines bool) error {
	dir, err := os.MkdirTemp("", "coverage")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	all := make(profile)
	for i, p := range append(slices.Clone(packages), "") {
		of := []string{p}
		if p == "" {
			of = packages // the tests of the root package execute all
		}
		file := filepath.Join(dir, fmt.Sprint(i))
		if err := test(p, of, file); err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := all.add(string(text)); err != nil {
			return fmt.Errorf("profile of %q: %w", p, err)
		}
	}
	return all.report(out, floor, lines)
}

// test runs the tests of a package, and writes to file which statements they execute in the packages of.
func test(p string, of []string, file string) error {
	paths := make([]string, len(of))
	for i := range of {
		paths[i] = module + "/" + of[i]
	}
	cmd := exec.Command("go", "test", "-count=1", "-coverprofile="+file, "-coverpkg="+strings.Join(paths, ","), strings.TrimSuffix(module+"/"+p, "/"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}

// report writes the table.
func (p profile) report(out io.Writer, floor float64, lines bool) error {
	var low []string
	for _, name := range packages {
		blocks := p.of(module + "/" + name)
		all, executed := blocks.count()
		if all == 0 {
			return fmt.Errorf("%s: no statements", name)
		}
		percent := 100 * float64(executed) / float64(all)
		if _, err := fmt.Fprintf(out, "%-15s %5.1f %%  %5d of %5d statements\n", name, percent, executed, all); err != nil {
			return err
		}
		if percent < floor {
			low = append(low, name)
		}
		if !lines {
			continue
		}
		for _, at := range blocks.missing() {
			if _, err := fmt.Fprintln(out, "   ", strings.TrimPrefix(at, module+"/")); err != nil {
				return err
			}
		}
	}
	if len(low) > 0 {
		return fmt.Errorf("less than %v %%: %s", floor, strings.Join(low, ", "))
	}
	return nil
}
