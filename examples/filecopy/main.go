// Filecopy copies files between two hosts by RDMA over TCP, to show how a storage
// program uses package iwarp.
//
//	filecopy serve [-addr HOST:PORT] [-nocrc] DIR
//	filecopy put [-addr HOST:PORT] [-nocrc] [-trace PCAP] FILE [NAME]
//	filecopy get [-addr HOST:PORT] [-nocrc] [-trace PCAP] NAME [FILE]
//	filecopy demo [-size SIZE] [-nocrc] [-trace PCAP]
//
// The server registers the file itself as a region, and the client moves its octets:
// with RDMA Writes into a file that is put, with RDMA Reads out of a file that is
// got. The server's program does not see them pass; it only names the file, and checks
// the sum in the end. The few words in between are in protocol.go.
//
// Demo makes a file, puts it to a server in a second process and gets it back, and
// holds the sums and the counters of both processes against each other.
//
// There is no authentication: every host that can reach the server's address can read and
// replace every file below DIR. The server listens on loopback unless told otherwise.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err == nil {
		return
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("interrupted: %w", err)
	}
	fmt.Fprintln(os.Stderr, "filecopy:", err)
	os.Exit(1)
}
