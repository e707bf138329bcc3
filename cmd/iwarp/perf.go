package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/commitperf"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/connectperf"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/incast"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/nvmeperf"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/perf"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/rmaperf"
)

func perfMain(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "commit" {
		return commitperf.Main(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == "connect" {
		return connectperf.Main(ctx, args[1:], os.Stdin, stdout, stderr)
	}
	if len(args) > 0 && args[0] == "incast" {
		return incast.Main(ctx, args[1:], stdout, stderr)
	}
	if len(args) > 0 && args[0] == "rma" {
		return rmaperf.Main(ctx, args[1:], os.Stdin, stdout, stderr)
	}
	if len(args) > 0 && args[0] == "nvme" {
		return nvmeperf.Main(ctx, args[1:], os.Stdin, stdout, stderr)
	}
	err := perf.Main(ctx, args, stdout, stderr)
	var wrong perf.UsageError
	if errors.As(err, &wrong) {
		return usageError(wrong)
	}
	return err
}
