package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/goiwarp/iwarp/examples/internal/program"
)

// The streams are the inputs and outputs of a command: results go to out, logs to diag.
type streams struct {
	in        io.Reader
	out, diag io.Writer
}

// An action executes a command line; args are the arguments that are not flags.
type action func(ctx context.Context, s *streams, args []string) error

// A command is a command of the program.
type command struct {
	name string
	args []string // names of the arguments that are not flags
	what string
	// flags adds the flags, and returns the action to perform after they were parsed.
	flags func(*flag.FlagSet) action
}

var commands = []command{
	{"serve", nil, "serve back ends as the namespaces of a subsystem", serveFlags},
	{"discover", []string{"ADDR"}, "list the subsystems that a target offers", discoverFlags},
	{"list", []string{"ADDR"}, "list the namespaces of a subsystem", listFlags},
	{"id", []string{"ADDR"}, "print what a controller, or a namespace, says of itself", idFlags},
	{"log", []string{"ADDR"}, "print a log page", logFlags},
	{"read", []string{"ADDR"}, "read octets of a namespace", readFlags},
	{"write", []string{"ADDR"}, "write octets to a namespace, and flush it", writeFlags},
	{"verify", []string{"ADDR"}, "write and read at random, and compare; what was in the namespace is lost", verifyFlags},
	{"key", []string{"FILE"}, "make a key for -auth", keyFlags},
}

// usage returns an error about a wrong command line.
func usage(format string, a ...any) error { return program.UsageError(fmt.Sprintf(format, a...)) }

// run executes the command line.
func run(ctx context.Context, args []string, s *streams) error {
	if len(args) == 0 {
		return usage("no command; nvme help lists them")
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		listCommands(s.out)
		return nil
	}
	for i := range commands {
		if c := &commands[i]; c.name == args[0] {
			return c.run(ctx, args[1:], s)
		}
	}
	return usage("no such command: %q; nvme help lists them", args[0])
}

func listCommands(w io.Writer) {
	fmt.Fprint(w, "usage: nvme COMMAND [ARGUMENTS] [FLAGS]\n\ncommands:\n")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-14s %s\n", strings.Join(append([]string{c.name}, c.args...), " "), c.what)
	}
	fmt.Fprint(w, "\nnvme COMMAND -h lists the flags of a command.\n")
}

func (c *command) run(ctx context.Context, args []string, s *streams) error {
	fs := flag.NewFlagSet("nvme "+c.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the error says what is wrong, once
	do := c.flags(fs)
	rest, err := parse(fs, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(s.out, "usage: nvme %s [FLAGS]\n%s\n\nflags:\n", strings.Join(append([]string{c.name}, c.args...), " "), c.what)
		fs.SetOutput(s.out)
		fs.PrintDefaults()
		return nil
	case err != nil:
		return usage("%s: %v", c.name, err)
	case len(rest) < len(c.args):
		return usage("%s: %s is missing", c.name, c.args[len(rest)])
	case len(rest) > len(c.args):
		return usage("%s: unexpected argument %q", c.name, rest[len(c.args)])
	}
	if err := s.result(ctx, c.name, func(ctx context.Context, s *streams) error { return do(ctx, s, rest) }); err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("interrupted: %w", err)
		}
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

// result calls do, and fails if a result could not be printed. The output of serve is not a result.
func (s *streams) result(ctx context.Context, name string, do func(context.Context, *streams) error) error {
	if name == "serve" {
		return do(ctx, s)
	}
	return program.Printing(ctx, s.out, func(ctx context.Context, out io.Writer) error {
		return do(ctx, &streams{in: s.in, out: out, diag: s.diag})
	})
}

// parse parses flags before, after and between arguments.
func parse(fs *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		if args = fs.Args(); len(args) == 0 {
			return rest, nil
		}
		rest, args = append(rest, args[0]), args[1:]
	}
}

// A list is a flag that may be given several times.
type list []string

func (l *list) String() string { return strings.Join(*l, " ") }

// Set is for package flag.
func (l *list) Set(text string) error {
	*l = append(*l, text)
	return nil
}
