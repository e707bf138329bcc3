// Mesh connects each of several processes to all others, to show how a program uses package cm.
//
//	mesh [-n PROCESSES] [-size OCTETS] [-timeout DURATION]
//
// The program starts the processes, controls each through its standard input, and checks the
// results:
//
//   - Each process sets up connections to all other processes at once (cm.DialMany), writes to
//     the memory of each with an RDMA Write, and announces it with a Send. The other process
//     verifies every octet.
//   - The keys are rotated while connections are being set up: the new key is added to the rings
//     of all servers, then it becomes the primary key of the clients, then the old one is retired.
//     No set-up may fail meanwhile; afterwards the old key must be refused.
//   - One process is killed. The others continue, and try to connect to it until it is back.
//
// Both sides of every connection are authenticated, in mode B. As a server, each process has its
// own master key; as a client, it has one key for each server, derived from that server's master
// key. So a process can impersonate neither another client nor another server.
//
// The data are not protected: use TLS on an untrusted network. Here all processes listen on loopback.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/goiwarp/iwarp/examples/internal/program"
)

func main() {
	program.Main("mesh", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdin, os.Stdout) })
}

// asProcess is the argument that makes the program run as one of the processes.
const asProcess = "process"

const mostOctets = 16 << 20

var errTimeout = errors.New("not done within -timeout")

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) == 1 && args[0] == asProcess {
		return obey(ctx, in, out)
	}
	fs := flag.NewFlagSet("mesh", flag.ContinueOnError)
	fs.SetOutput(out)
	n := fs.Int("n", 8, "how many `processes`, 2 to 64")
	size := fs.Int("size", 64<<10, "`octets` of a Write")
	timeout := fs.Duration("timeout", time.Minute, "for everything")
	if err := fs.Parse(args); err != nil {
		return program.Called(err)
	}
	if fs.NArg() != 0 || *n < 2 || *n > 64 || *size < 1 || *size > mostOctets || *timeout <= 0 {
		return program.UsageError(fmt.Sprintf("there must be 2 to 64 processes, 1 to %d octets, some time, and no argument", mostOctets))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, *timeout, errTimeout)
	defer cancel()
	err := newMesh(*n, *size, out).run(ctx)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}
