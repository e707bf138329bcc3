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
	"strconv"

	"github.com/goiwarp/iwarp"
)

const (
	defaultPort = 7174
	defaultSize = 64
	// maxSize is rping's RPING_BUFSIZE, less one.
	maxSize = 64<<10 - 1
)

// A pinger holds what the flags said and the RNIC that all connections share. The
// flags mean what they mean to rping.
type pinger struct {
	server, client, persistent bool
	addr                       string
	port                       int
	count                      int // 0: for ever
	size                       int
	validate, verbose          bool
	trace                      string
	network                    string

	rnic   *iwarp.RNIC
	pd     *iwarp.PD
	stdout io.Writer
	log    *slog.Logger
}

func pingMain(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	p := &pinger{stdout: stdout}
	fs := flag.NewFlagSet("iwarp ping", flag.ContinueOnError)
	fs.SetOutput(stderr)
	debug := p.flags(fs)
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError(err.Error())
	}
	if err := p.check(fs.NArg()); err != nil {
		return err
	}
	level := slog.LevelWarn
	if *debug {
		level = slog.LevelDebug
	}
	p.log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	return p.run(ctx)
}

func (p *pinger) flags(fs *flag.FlagSet) (debug *bool) {
	fs.BoolVar(&p.server, "s", false, "be the server")
	fs.BoolVar(&p.client, "c", false, "be the client")
	fs.StringVar(&p.addr, "a", "", "address of the server; of a server: where it listens (default: everywhere)")
	fs.IntVar(&p.port, "p", defaultPort, "port of TCP or SCTP; of sctp+udp: of UDP")
	fs.StringVar(&p.network, "network", "tcp", "tcp, or DDP over SCTP, which rping does not know: sctp, the kernel's, or sctp+udp, in user space")
	fs.IntVar(&p.count, "C", 0, "number of pings; 0: for ever. A server goes by its client")
	fs.IntVar(&p.size, "S", defaultSize, "octets of a ping; of a server: the most that it takes")
	fs.BoolVar(&p.validate, "V", false, "compare what comes back with what was sent")
	fs.BoolVar(&p.verbose, "v", false, "print the data")
	fs.BoolVar(&p.persistent, "P", false, "server: serve any number of clients, also at the same time")
	fs.StringVar(&p.trace, "trace", "", "write a pcap of the connection to `FILE`; not with -P")
	return fs.Bool("d", false, "log what happens")
}

func (p *pinger) check(rest int) error {
	switch {
	case rest > 0:
		return usageError("unexpected arguments")
	case p.server == p.client:
		return usageError("one of -s and -c is needed")
	case p.client && p.addr == "":
		return usageError("-c needs -a")
	case p.client && p.persistent, p.trace != "" && p.persistent:
		return usageError("-P is for servers, and cannot be traced")
	case p.trace != "" && p.network != "tcp":
		return usageError("-trace is for tcp")
	case p.count < 0:
		return usageError("-C is negative")
	case p.size < minSize || p.size > maxSize:
		return usageError(fmt.Sprintf("-S must be from %d to %d", minSize, maxSize))
	case p.port < 0 || p.port > 65535:
		return usageError("-p is no port")
	}
	return nil
}

func (p *pinger) run(ctx context.Context) (err error) {
	p.rnic, err = iwarp.Open(&iwarp.Config{Logger: p.log})
	if err != nil {
		return err
	}
	defer func() {
		if cerr := p.rnic.Close(); err == nil {
			err = cerr
		}
	}()
	if p.pd, err = p.rnic.AllocPD(); err != nil {
		return err
	}
	if p.server {
		return p.serve(ctx)
	}
	return p.ping(ctx)
}

func (p *pinger) hostport() string { return net.JoinHostPort(p.addr, strconv.Itoa(p.port)) }

// openTrace opens the trace file. Without one the writer is nil and the closer does nothing.
func (p *pinger) openTrace() (io.Writer, func() error, error) {
	if p.trace == "" {
		return nil, func() error { return nil }, nil
	}
	f, err := os.Create(p.trace)
	if err != nil {
		return nil, nil, err
	}
	return f, f.Close, nil
}
