// Command iwarp is the toolbox of the library.
//
//	iwarp ping -s [-a addr] [-p port] ...    answer Linux's rping, or iwarp ping -c
//	iwarp ping -c -a addr [-p port] ...      be a client of either
//	iwarp perf [-suite standard] ...         measure the library against plain TCP
//	iwarp perf commit ...                    measure RDMA Commit against what it replaces
//	iwarp perf connect ...                   measure the set-up of connections
//	iwarp perf incast ...                    measure what many hosts do to one receiver, with and without a Solicitor
//	iwarp perf rma ...                       measure operations on regions with keys
//	iwarp perf nvme ...                      measure the host and the target of NVMe over RDMA
//	iwarp perf streams ...                   measure stream sockets, and READ of NFS over RDMA
//	iwarp attack -addr host:port ...         have random attackers at a listener of yours
//	iwarp help                               list the commands
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

// A command is one of the program's subcommands.
type command struct {
	name, summary string
	run           func(ctx context.Context, args []string, stdout, stderr io.Writer) error
}

var commands = []command{
	{"ping", "exchange data with Linux's rping or with another iwarp ping", pingMain},
	{"perf", "measure the library against plain TCP", perfMain},
	{"attack", "have random attackers at a listener of yours", attackMain},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := dispatch(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// dispatch runs the command that the arguments name and returns the exit status: 0,
// 1 if it failed, or 2 if it was called wrongly.
func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stderr)
		return 2
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(stdout)
		return 0
	}
	for _, c := range commands {
		if c.name == args[0] {
			return status(c.run(ctx, args[1:], stdout, stderr), c.name, stderr)
		}
	}
	fmt.Fprintf(stderr, "iwarp: unknown command %q\n", args[0])
	usage(stderr)
	return 2
}

// status reports the error of a command.
func status(err error, name string, stderr io.Writer) int {
	var wrong usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &wrong):
		fmt.Fprintf(stderr, "iwarp %s: %v\n", name, err)
		return 2
	}
	fmt.Fprintf(stderr, "iwarp %s: %v\n", name, err)
	return 1
}

// A usageError says that a command was called wrongly.
type usageError string

func (e usageError) Error() string { return string(e) }

func usage(w io.Writer) {
	fmt.Fprint(w, "usage: iwarp COMMAND [FLAGS]\n\ncommands:\n")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-8s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, "\niwarp COMMAND -h lists the flags of a command.\n")
}
