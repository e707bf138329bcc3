package main

import (
	"context"
	"errors"
	"io"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/perf"
)

func perfMain(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	err := perf.Main(ctx, args, stdout, stderr)
	var wrong perf.UsageError
	if errors.As(err, &wrong) {
		return usageError(wrong)
	}
	return err
}
