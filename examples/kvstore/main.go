package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kvstore:", err)
		os.Exit(1)
	}
}

type options struct {
	keys, depth, pairs int
	span               time.Duration
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	fs := flag.NewFlagSet("kvstore", flag.ContinueOnError)
	var o options
	fs.IntVar(&o.keys, "keys", 10000, "")
	fs.IntVar(&o.depth, "depth", 64, "")
	fs.IntVar(&o.pairs, "pairs", 9, "")
	fs.DurationVar(&o.span, "span", 100*time.Millisecond, "")
	if len(args) == 0 {
		return errors.New("usage")
	}
	if err := fs.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "bench":
		return runBench(ctx, &o, out)
	case "benchserver":
		return benchServe(ctx, &o, in, out)
	}
	return errors.New("usage")
}
