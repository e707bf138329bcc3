// Filecopy copies files between two hosts by RDMA, to show how a storage program uses package iwarp. Package
// transfer does the work, for this program and for the command iwarp, which has the same commands.
//
//	filecopy serve [--network NETWORK] [--addr HOST:PORT] [--nocrc] DIR
//	filecopy put [--network NETWORK] [--addr HOST:PORT] [--nocrc] [--trace PCAP] FILE [NAME]
//	filecopy get [--network NETWORK] [--addr HOST:PORT] [--nocrc] [--trace PCAP] NAME [FILE]
//	filecopy demo [--network NETWORK] [--loss PERCENT] [--size SIZE] [--nocrc] [--trace PCAP]
//
// NETWORK is tcp, or DDP over SCTP: sctp, the kernel's, or sctp+udp, in user space.
//
// Demo makes a file, puts it to a server in a second process, gets it back, and
// compares the sums and the counters of both processes.
//
// There is no authentication: every host that can reach the server's address can read and
// replace every file below DIR. The server listens on loopback unless told otherwise.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/goiwarp/iwarp/examples/internal/program"
)

func main() {
	program.Main("filecopy", func(ctx context.Context) error {
		err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("interrupted: %w", err)
		}
		return err
	})
}
