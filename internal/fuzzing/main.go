// Command fuzzing runs every fuzz target of the project in turn, and adds up the time and results of each.
//
//	go run ./internal/fuzzing -for 10m
//	go run ./internal/fuzzing -for 1h -only 'FuzzStreams|^ddp'
//	go run ./internal/fuzzing -corpus -only '^ddp'
//	go run ./internal/fuzzing -docs
//
// It runs in the root of the module, and also fuzzes the targets of the modules below it. The next slice of time goes
// to the target with the least processor time so far according to the ledger: a text file with the executions, the
// processor time, the new inputs and the findings of each target, written after every slice. An interrupt ends the
// running slice, and its results are added before the program ends. At the end the table in docs/fuzzing.md is
// renewed, unless -ledger names another file.
//
// A finding is an input that makes a target fail, or a target that executes nothing for three minutes. The go command
// leaves the input in testdata/fuzz of the package. The target gets no further slice in this run, and the program ends
// with 1. A wrong flag is 2.
//
// Interesting inputs stay in the cache of the go command. With -corpus the program adds a few of them to testdata/fuzz:
// the smallest ones that run statements of the module which no other seed runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

// ledgerFile is the ledger of the project.
const ledgerFile = "internal/fuzzing/ledger.txt"

// options holds the flags.
type options struct {
	time   time.Duration
	slice  time.Duration
	only   *regexp.Regexp
	ledger string
	list   bool
	docs   bool
	corpus bool
	root   string
}

func main() {
	o := options{root: "."}
	only := ""
	flag.DurationVar(&o.time, "for", 10*time.Minute, "how `long` to fuzz")
	flag.DurationVar(&o.slice, "slice", 5*time.Minute, "how `long` a target is fuzzed at a time")
	flag.StringVar(&only, "only", "", "fuzz only the targets that match this `regexp`, which are named as in the ledger")
	flag.StringVar(&o.ledger, "ledger", ledgerFile, "`file` with the totals")
	flag.BoolVar(&o.list, "list", false, "print the table and end")
	flag.BoolVar(&o.docs, "docs", false, "write the totals into "+docsFile+" and end")
	flag.BoolVar(&o.corpus, "corpus", false, "take inputs of the cache into testdata and end")
	flag.Parse()
	var err error
	if o.only, err = regexp.Compile(only); err != nil || flag.NArg() > 0 || o.time <= 0 || o.slice <= 0 {
		fmt.Fprintln(os.Stderr, "fuzzing: there are no arguments, -for and -slice must be positive, -only a regular expression")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, os.Stdout, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzzing:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, o options) error {
	targets, err := find(o.root, o.only)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return errors.New("no target matches")
	}
	l, err := readLedger(o.ledger)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fuzzing-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &builder{dir: dir, built: make(map[string]string)}
	switch {
	case o.list:
		return l.print(w, targets)
	case o.docs:
		return writeDocs(o.root, l)
	case o.corpus:
		return takeCorpus(ctx, w, b, targets)
	}
	return fuzz(ctx, w, b, targets, l, o)
}

// fuzz gives slices to targets until the time is over or the context ends.
func fuzz(ctx context.Context, w io.Writer, b *builder, targets []target, l ledger, o options) error {
	ctx, cancel := context.WithTimeout(ctx, o.time)
	defer cancel()
	failed := make(map[string]bool)
	for ctx.Err() == nil && len(failed) < len(targets) {
		t := next(targets, l, failed)
		r, err := t.run(ctx, b, o.slice)
		if ctx.Err() != nil && errors.Is(err, errNotBuilt) {
			break
		}
		if err != nil {
			return err
		}
		row := l[t.name]
		row.add(r)
		l[t.name] = row
		if err := l.write(o.ledger); err != nil {
			return err
		}
		fmt.Fprintf(w, "%s %s: %d executions, %.1f s, %d new inputs\n", time.Now().Format(time.TimeOnly), t.name, r.execs, r.cpu.Seconds(), r.inputs)
		if r.finding != "" {
			failed[t.name] = true
			fmt.Fprintf(w, "FINDING in %s:\n%s\n", t.name, r.finding)
		}
	}
	if o.ledger == ledgerFile {
		if err := writeDocs(o.root, l); err != nil {
			return err
		}
	}
	if err := l.print(w, targets); err != nil {
		return err
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d targets have a finding", len(failed))
	}
	return nil
}

// next returns the target with the least processor time that has not failed.
func next(targets []target, l ledger, failed map[string]bool) (least target) {
	for _, t := range targets {
		if !failed[t.name] && (least.name == "" || l[t.name].cpu < l[least.name].cpu) {
			least = t
		}
	}
	return least
}
