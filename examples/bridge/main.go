// Bridge joins rsockets and TCP, so that a program that speaks one of them reaches a server that speaks the
// other.
//
//	bridge [-nocrc] in LISTEN TARGET     accepts rsockets at LISTEN, and connects each to TARGET by TCP
//	bridge [-nocrc] out LISTEN TARGET    accepts TCP at LISTEN, and connects each to TARGET by rsockets
//
// With "bridge in :5201 127.0.0.1:5202", for example, iperf3 under librspreload on another host reaches
// a stock "iperf3 -s -p 5202" on this one. There is no authentication: every host that can reach LISTEN
// can reach TARGET.
//
// If a connection is lost on one side, the other side ends as if it had been closed. Protocols whose messages have no length do not
// notice that data are missing.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/internal/program"
	"github.com/goiwarp/iwarp/rsocket"
)

func main() {
	program.Main("bridge", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) })
}

const usage = "usage: bridge [-nocrc] in|out LISTEN TARGET"

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bridge", flag.ContinueOnError)
	flags.SetOutput(stderr)
	noCRC := flags.Bool("nocrc", false, "do without CRCs, if the peer agrees")
	flags.Usage = func() {
		_, _ = fmt.Fprintln(stderr, usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return program.Called(err)
	}
	if flags.NArg() != 3 || flags.Arg(0) != "in" && flags.Arg(0) != "out" {
		return program.UsageError(fmt.Sprintf("%q are no arguments; %s", flags.Args(), usage))
	}
	rnic, err := iwarp.Open(nil)
	if err != nil {
		return err
	}
	defer func() { _ = rnic.Close() }()
	// A program that exits without closing its socket sends no end of its stream.
	cfg := &rsocket.Config{LenientEOF: true}
	cfg.QP.MPA.NoCRC = *noCRC

	var l net.Listener
	b := &bridge{target: flags.Arg(2), log: stderr}
	if flags.Arg(0) == "in" {
		l, err = rsocket.Listen(ctx, rnic, "tcp", flags.Arg(1), cfg)
		b.dial = (&net.Dialer{}).DialContext
	} else {
		l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", flags.Arg(1))
		b.dial = rsocket.Dialer(rnic, cfg)
	}
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(stdout, "listening at", l.Addr())
	return b.serve(ctx, l)
}
