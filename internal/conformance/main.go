// Command conformance writes CONFORMANCE.md: every numbered requirement of the
// specifications, with the tests that show it, or with the reason why no test does.
// It prints a table of the counts.
//
//	go run ./internal/conformance
//
// in the root of the module.
//
// The requirements are listed in the requirements directory, one per line, in our own
// words. A test shows the requirements whose numbers begin its name:
// TestDDP_64_65_SEC_5_QueueAndBuffer shows DDP-64, DDP-65 and SEC-5. The reasons are in
// docs/conformance-exceptions.md. The tests of this command fail if a requirement has
// neither a test nor a reason, or both, and if CONFORMANCE.md is stale.
package main

import (
	"bytes"
	"fmt"
	"os"
)

const (
	reportFile     = "CONFORMANCE.md"
	exceptionsFile = "docs/conformance-exceptions.md"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run() error {
	l, err := load(".")
	if err != nil {
		return err
	}
	if err := os.WriteFile(reportFile, l.report(), 0o644); err != nil {
		return err
	}
	var tally bytes.Buffer
	l.writeTally(&tally)
	fmt.Print(tally.String())
	problems := l.problems()
	for _, p := range problems {
		fmt.Fprintln(os.Stderr, p)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%d problems; the report was written all the same", len(problems))
	}
	return nil
}
