package main

import (
	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/commitperf"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/connectperf"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/incast"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/nvmeperf"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/perf"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/rmaperf"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/scaleperf"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/streamperf"
)

// perfCommand is "iwarp perf" with its subcommands.
func perfCommand() *cobra.Command {
	cmd := perf.Command()
	cmd.AddCommand(commitperf.Command(), connectperf.Command(), incast.Command(), rmaperf.Command(), nvmeperf.Command(), scaleperf.Command(), streamperf.Command())
	for _, c := range append(cmd.Commands(), cmd) {
		cli.Interruptible(c)
	}
	return cmd
}
