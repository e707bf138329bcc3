package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/examples/filecopy/transfer"
)

const (
	defaultPort = 7174
	defaultSize = 64
	// maxSize is rping's RPING_BUFSIZE, less one.
	maxSize = 64<<10 - 1
	// defaultInterval is the interval of pings if their number is not given.
	defaultInterval = time.Second
)

// A pinger holds the flags and the RNIC that all connections share. The
// flags of one letter mean what they mean to rping.
type pinger struct {
	server, client, persistent bool
	addr                       string
	port                       int
	count                      int // 0: for ever
	size                       int
	interval                   time.Duration
	validate, verbose, debug   bool
	quiet, json                bool
	trace                      string
	network                    string

	rnic   *iwarp.RNIC
	pd     *iwarp.PD
	stdout io.Writer
	log    *slog.Logger
}

func pingCommand() *cobra.Command {
	p := &pinger{}
	cmd := &cobra.Command{
		Use: "ping [HOST[:PORT]]", Short: "exchange data with Linux's rping, or with another iwarp ping", Args: cli.Args(0, 1),
		Long: `Measures how long it takes to send data to a server and back by RDMA: the server reads them by an RDMA Read, and writes
them back by an RDMA Write. The protocol is rping's, and so are the flags of one letter: either end may be rping.

iwarp ping HOST is short for iwarp ping -c -a HOST, and HOST:PORT for -a HOST -p PORT. Without -C there is a ping each
second until Ctrl-C; with -C one follows the other. With -v each ping is printed as rping prints it.`,
		Example: `  iwarp ping -s                     a server, for one client; with -P for any number of them
  iwarp ping 192.0.2.1              a client
  iwarp ping -c -a 192.0.2.1 -C 1000 -S 4096 -V -q`,
		Annotations: map[string]string{cli.ServedBy: "iwarp ping -s, or rping -s"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.check(args, cmd.Flags().Changed("interval"), cmd.Flags().Changed("port")); err != nil {
				return err
			}
			s := cli.StreamsOf(cmd)
			level := slog.LevelWarn
			if p.debug {
				level = slog.LevelDebug
			}
			p.stdout, p.log = s.Out, slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: level}))
			return p.run(cmd.Context())
		},
	}
	p.flags(cmd)
	return cmd
}

func (p *pinger) flags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVarP(&p.server, "server", "s", false, "be the server")
	fs.BoolVarP(&p.client, "client", "c", false, "be the client")
	fs.StringVarP(&p.addr, "addr", "a", "", "`ADDRESS` of the server; with -s: where it listens (default: everywhere)")
	fs.IntVarP(&p.port, "port", "p", defaultPort, "port of TCP or SCTP; with sctp+udp: of UDP")
	fs.IntVarP(&p.count, "count", "C", 0, "number of pings; 0: until Ctrl-C; a server ends with its client in any case")
	fs.IntVarP(&p.size, "size", "S", defaultSize, "octets of a ping; with -s: the most that the server takes")
	fs.BoolVarP(&p.validate, "validate", "V", false, "compare what comes back with what was sent")
	fs.BoolVarP(&p.verbose, "verbose", "v", false, "print the data, as rping does")
	fs.BoolVarP(&p.persistent, "persistent", "P", false, "server: serve any number of clients, also at the same time")
	fs.BoolVarP(&p.debug, "debug", "d", false, "log what happens")
	fs.BoolVarP(&p.quiet, "quiet", "q", false, "print only the summary")
	fs.DurationVar(&p.interval, "interval", 0, "time from one ping to the next (default: 1s without -C)")
	fs.BoolVar(&p.json, "json", false, "print one JSON object a line")
	fs.StringVar(&p.network, "network", "tcp", "tcp, or, for DDP over SCTP, which rping does not support, sctp (the kernel's) or sctp+udp (in user space)")
	fs.StringVar(&p.trace, "trace", "", "write a pcap of the connection to `FILE`; not with -P")
}

// check completes the flags, and refuses combinations that make no sense.
func (p *pinger) check(args []string, intervalGiven, portGiven bool) error {
	if len(args) > 0 {
		if p.server || p.addr != "" {
			return cli.Usagef("unexpected argument %q: HOST stands for -c -a HOST", args[0])
		}
		p.client, p.addr = true, args[0]
	}
	if err := p.splitPort(portGiven); err != nil {
		return err
	}
	if p.count == 0 && !intervalGiven {
		p.interval = defaultInterval
	}
	switch {
	case p.server == p.client:
		return cli.Usagef("one of -s and -c is needed, or the name of a server")
	case p.client && p.addr == "":
		return cli.Usagef("-c needs -a ADDRESS")
	case p.persistent && (p.client || p.trace != ""):
		return cli.Usagef("-P is for servers, and cannot be traced")
	}
	return p.checkValues()
}

// splitPort removes the port from an address that has one.
func (p *pinger) splitPort(portGiven bool) error {
	host, port, err := net.SplitHostPort(p.addr)
	if err != nil { // it has none: -p, or the default, is the port
		if n := len(p.addr) - 1; n > 1 && p.addr[0] == '[' && p.addr[n] == ']' {
			p.addr = p.addr[1:n] // an IPv6 address, written as in front of a port
		}
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil:
		return cli.Usagef("%q of %s is no port: want 0 to 65535", port, p.addr)
	case portGiven:
		return cli.Usagef("%s has a port already: leave -p out", p.addr)
	}
	p.addr, p.port = host, int(n)
	return nil
}

func (p *pinger) checkValues() error {
	switch {
	case p.trace != "" && p.network != "tcp":
		return cli.Usagef("--trace is for tcp")
	case p.count < 0 || p.interval < 0:
		return cli.Usagef("-C and --interval are not negative")
	case p.size < minSize || p.size > maxSize:
		return cli.Usagef("-S must be from %d to %d", minSize, maxSize)
	case p.port < 0 || p.port > 65535:
		return cli.Usagef("-p %d is no port: want 0 to 65535", p.port)
	case p.json && p.verbose:
		return cli.Usagef("--json and -v exclude each other")
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
	t, err := transfer.OpenTrace(p.trace, "")
	if err != nil || t == nil {
		return nil, func() error { return nil }, err
	}
	return t, t.Close, nil
}
