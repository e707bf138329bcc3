// Ninep serves a directory by 9P2000.L over RDMA, for Linux to mount. It shows how a server made for streams
// receives its messages from package iwarp.
//
//	ninep -root DIR [-listen :5640] [-ro] [-msize N] [-depth N] [-srq N] [-nocrc] [-tcp :564] [-v]
//
// On the client, with the module siw and a device on its interface:
//
//	mount -t 9p -o trans=rdma,port=5640,version=9p2000.L,msize=131072,access=any 10.1.0.2 /mnt
//
// Package rdma9p is the adapter. The server is that of github.com/hugelgupf/p9, which knows nothing of RDMA; with -tcp it
// serves clients of trans=tcp as well.
//
// There is no authentication: every host that can reach the address has the access of the user that runs ninep to the files
// below DIR. The client, not the server, follows symbolic links that lead out of DIR. With -ro, requests that may change
// something are refused.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"

	"github.com/hugelgupf/p9/p9"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/internal/program"
	"github.com/goiwarp/iwarp/examples/ninep/dirfs"
	"github.com/goiwarp/iwarp/examples/ninep/rdma9p"
)

func main() {
	program.Main("ninep", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) })
}

// options holds the options of the command line.
type options struct {
	listen, tcp, root string
	readOnly, noCRC   bool
	msize, depth, srq int
	verbose           bool
}

func parse(args []string, stderr io.Writer) (*options, error) {
	var o options
	f := flag.NewFlagSet("ninep", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.root, "root", "", "serve this `directory`")
	f.StringVar(&o.listen, "listen", ":5640", "take connections of RDMA at this `address`")
	f.StringVar(&o.tcp, "tcp", "", "also take connections of trans=tcp at this `address`")
	f.BoolVar(&o.readOnly, "ro", false, "refuse requests that may change something")
	f.BoolVar(&o.noCRC, "nocrc", false, "use no CRC unless the client wants it")
	f.IntVar(&o.msize, "msize", 0, "the largest message, in `octets` (default 262144)")
	f.IntVar(&o.depth, "depth", 0, "how many `requests` a client may have outstanding (default 64)")
	f.IntVar(&o.srq, "srq", 0, "share this `number` of receives among all clients (default: each has its own)")
	f.BoolVar(&o.verbose, "v", false, "log the end of each connection")
	if err := f.Parse(args); err != nil {
		return nil, program.Called(err)
	}
	switch {
	case f.NArg() > 0:
		return nil, program.UsageError(fmt.Sprintf("unexpected argument %q", f.Arg(0)))
	case o.root == "":
		return nil, program.UsageError("-root is missing")
	case o.readOnly && o.tcp != "":
		return nil, program.UsageError("-ro does not work with -tcp: only the adapter refuses requests")
	}
	if st, err := os.Stat(o.root); err != nil {
		return nil, err
	} else if !st.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", o.root)
	}
	return &o, dirfs.Check()
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	level := slog.LevelWarn
	if o.verbose {
		level = slog.LevelInfo
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	rnic, err := iwarp.Open(&iwarp.Config{Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rnic.Close()) }()
	return serve(ctx, o, rnic, stdout, log)
}

// serve serves the directory until ctx ends.
func serve(ctx context.Context, o *options, rnic *iwarp.RNIC, stdout io.Writer, log *slog.Logger) error {
	pd, err := rnic.AllocPD()
	if err != nil {
		return err
	}
	l, err := rnic.Listen(ctx, "tcp", o.listen, nil)
	if err != nil {
		return err
	}
	server := rdma9p.DelayEnd(p9.NewServer(dirfs.Attacher(o.root)))
	var others sync.WaitGroup
	defer others.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.tcp != "" {
		t, err := new(net.ListenConfig).Listen(ctx, "tcp", o.tcp)
		if err != nil {
			return err
		}
		fmt.Fprintln(stdout, "ninep: trans=tcp at", t.Addr())
		others.Go(func() { cancel(serveTCP(ctx, t, server, log)) })
	}
	fmt.Fprintln(stdout, "ninep: trans=rdma at", l.Addr())
	err = rdma9p.Serve(ctx, l, server, &rdma9p.Config{
		MaxMsize: o.msize, Depth: o.depth, SRQ: o.srq, ReadOnly: o.readOnly, Logger: log,
		QP: iwarp.QPConfig{PD: pd, MPA: iwarp.MPAOptions{NoCRC: o.noCRC}},
	})
	if ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}
