// Nvme serves disks by NVMe over Fabrics with RDMA, and uses those that others serve, to show how
// a storage program uses package iwarp. What it serves, the Linux kernel can mount; what it uses,
// the Linux kernel can serve.
//
//	nvme serve -backing SPEC [-backing SPEC]... [-listen HOST:PORT]... [flags]
//	nvme discover ADDR [flags]
//	nvme list|id|log ADDR [flags]
//	nvme read|write ADDR [-nsid N] [-offset O] [-length L] [-file FILE] [flags]
//	nvme verify ADDR [-nsid N] [-jobs N] [-depth N] [-size SIZE] [-time DURATION] [flags]
//	nvme key FILE
//
// The target is package target, its media are those of package backend, and the host is package
// host; this program has their flags, and what it prints. nvme COMMAND -h lists the flags.
//
// Serve listens on loopback unless it is told otherwise. Names of hosts are no proof of anything:
// on a network that is not trusted use -auth or the flags of TLS, which only this program's host
// has, and not that of Linux.
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

// status does what the command line asks for, prints the error, a part of which may be the peer's, and returns the exit status.
func status(ctx context.Context, args []string, s *streams) int {
	return program.Status("nvme", run(ctx, args, s), s.diag)
}
