package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/commitperf"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/connectperf"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/incast"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/nvmeperf"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/perf"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/rmaperf"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/streamperf"
)

// perfCommands are the measurements of "iwarp perf" that have a name.
var perfCommands = []command{
	{"commit", "RDMA Commit against what it replaces", commitperf.Main},
	{"connect", "the set-up of connections", withInput(connectperf.Main)},
	{"incast", "many hosts and one receiver, with and without a Solicitor", incast.Main},
	{"rma", "operations on regions with keys", withInput(rmaperf.Main)},
	{"nvme", "the host and the target of NVMe over RDMA", withInput(nvmeperf.Main)},
	{"streams", "stream sockets, and READ of NFS over RDMA", withInput(streamperf.Main)},
}

// withInput gives a command the standard input, which tells a server that its client has ended.
func withInput(run func(context.Context, []string, io.Reader, io.Writer, io.Writer) error) func(context.Context, []string, io.Writer, io.Writer) error {
	return func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		return run(ctx, args, os.Stdin, stdout, stderr)
	}
}

func perfMain(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	for _, c := range perfCommands {
		if len(args) > 0 && args[0] == c.name {
			return c.run(ctx, args[1:], stdout, stderr)
		}
	}
	err := perf.Main(ctx, args, stdout, stderr)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stderr, "\nOther measurements, each with flags of its own:\n")
		for _, c := range perfCommands {
			fmt.Fprintf(stderr, "  iwarp perf %-8s %s\n", c.name, c.summary)
		}
	}
	var wrong perf.UsageError
	if errors.As(err, &wrong) {
		return usageError(wrong)
	}
	return err
}
