// Rcopy copies a file to another host over rsockets, in the protocol of librdmacm's rcopy, so that either side may
// be that program.
//
//	rcopy serve [-listen ADDR] [-nocrc] DIR         receives files, and stores them below DIR
//	rcopy put [-nocrc] FILE HOST[:PORT] [DEST]      sends FILE, as DEST if it is given
//
// The port is 7427. There is no authentication: every host that can reach the server can replace every
// file below DIR, but none outside it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/internal/program"
	"github.com/goiwarp/iwarp/rsocket"
)

const port = "7427"

func main() {
	program.Main("rcopy", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) })
}

var errUsage = program.UsageError("usage: rcopy serve [-listen ADDR] [-nocrc] DIR, or rcopy put [-nocrc] FILE HOST[:PORT] [DEST]")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	if program.AsksForHelp(args[0]) {
		fmt.Fprintln(stdout, errUsage)
		return nil
	}
	flags := flag.NewFlagSet("rcopy", flag.ContinueOnError)
	flags.SetOutput(stderr)
	noCRC := flags.Bool("nocrc", false, "do without CRCs, if the peer agrees")
	listen := flags.String("listen", ":"+port, "where serve listens")
	if err := flags.Parse(args[1:]); err != nil {
		return program.Called(err)
	}
	rnic, err := iwarp.Open(nil)
	if err != nil {
		return err
	}
	defer func() { _ = rnic.Close() }()
	cfg := &rsocket.Config{}
	cfg.QP.MPA.NoCRC = *noCRC
	switch n := flags.NArg(); {
	case args[0] == "serve" && n == 1:
		return serveAt(ctx, rnic, *listen, flags.Arg(0), cfg, stdout, stderr)
	case args[0] == "put" && (n == 2 || n == 3):
		dest := filepath.Base(flags.Arg(0))
		if n == 3 {
			dest = flags.Arg(2)
		}
		return putTo(ctx, rnic, flags.Arg(0), flags.Arg(1), dest, cfg, stdout)
	}
	return errUsage
}

func serveAt(ctx context.Context, rnic *iwarp.RNIC, addr, dir string, cfg *rsocket.Config, stdout, stderr io.Writer) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	l, err := rsocket.Listen(ctx, rnic, "tcp", addr, cfg)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(stdout, "listening at", l.Addr())
	return (&server{root: root, log: stderr}).serve(ctx, l)
}

func putTo(ctx context.Context, rnic *iwarp.RNIC, file, addr, dest string, cfg *rsocket.Config, stdout io.Writer) error {
	f, err := openFile(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	c, err := rsocket.Dial(ctx, rnic, "tcp", withPort(addr), cfg)
	if err != nil {
		return err
	}
	abort := program.AtEnd(ctx, func() { _ = c.Close() })
	n, err := put(c, f, dest)
	if abort() {
		err = errors.Join(err, c.Close())
	}
	if err == nil {
		_, _ = fmt.Fprintf(stdout, "%s: %d octets\n", dest, n)
	}
	return err
}

// withPort adds the port to an address without one. An IPv6 address may be in brackets.
func withPort(addr string) string {
	if _, _, err := net.SplitHostPort(addr); err == nil {
		return addr
	}
	return net.JoinHostPort(strings.Trim(addr, "[]"), port)
}
