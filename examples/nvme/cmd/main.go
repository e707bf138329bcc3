// Nvme serves disks by NVMe over Fabrics with RDMA, and uses disks that others serve, to show how
// a storage program uses package iwarp. The Linux kernel can mount the disks that it serves, and
// serve disks that it uses.
//
//	nvme serve -backing SPEC [-backing SPEC]... [-listen HOST:PORT]... [flags]
//	nvme discover ADDR [flags]
//	nvme list|id|log ADDR [flags]
//	nvme read|write ADDR [-nsid N] [-offset O] [-length L] [-file FILE] [flags]
//	nvme verify ADDR [-nsid N] [-jobs N] [-depth N] [-size SIZE] [-time DURATION] [flags]
//	nvme key FILE
//
// The target is package target, its media are in package backend, and the host is package host; this
// program provides their flags and their output. nvme COMMAND -h lists the flags.
//
// Serve listens on loopback unless told otherwise. Names of hosts prove nothing: on an untrusted
// network use -auth or the TLS flags. Only this program's host supports them, not the host of
// Linux.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/goiwarp/iwarp/examples/internal/program"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(status(ctx, os.Args[1:], &streams{in: os.Stdin, out: os.Stdout, diag: os.Stderr}))
}

// status executes the command line, prints the error, a part of which may come from the peer, and returns the exit status.
func status(ctx context.Context, args []string, s *streams) int {
	return program.Status("nvme", run(ctx, args, s), s.diag)
}
