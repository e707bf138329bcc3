// Command iwarp is the tool of the library: it demonstrates RDMA, copies files, finds faults, measures, and attacks.
//
//	go run github.com/goiwarp/iwarp/cmd/iwarp@latest demo
//
// iwarp help lists the commands, and iwarp help COMMAND describes one. Each command is a file of this package, and
// commands (root.go) lists them; package internal/cli contains what they share.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	status := cli.Main(ctx, rootCommand(), os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	os.Exit(status)
}
