package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"path"
	"path/filepath"

	"github.com/goiwarp/iwarp/examples/filecopy/transfer"
	"github.com/goiwarp/iwarp/examples/internal/program"
	"github.com/goiwarp/iwarp/internal/units"
)

const usage = `usage:
  filecopy serve [--network NETWORK] [--addr HOST:PORT] [--nocrc] DIR
  filecopy put [--network NETWORK] [--addr HOST:PORT] [--nocrc] [--trace PCAP] FILE [NAME]
  filecopy get [--network NETWORK] [--addr HOST:PORT] [--nocrc] [--trace PCAP] NAME [FILE]
  filecopy demo [--network NETWORK] [--loss PERCENT] [--size SIZE] [--nocrc] [--trace PCAP]

NETWORK is tcp, or DDP over SCTP: sctp, the kernel's, or sctp+udp, in user space.`

// A command is one subcommand with its flags and outputs. Results go to out, the log
// and the progress bar to diag.
type command struct {
	name      string
	out, diag io.Writer
	args      []string // the arguments after the flags

	transfer.Link
	addr  string
	trace string
	size  units.Size
}

// run executes the command line.
func run(ctx context.Context, args []string, out, diag io.Writer) error {
	switch {
	case len(args) == 0:
		return program.UsageError("no command: filecopy help lists them")
	case program.AsksForHelp(args[0]):
		fmt.Fprintln(out, usage)
		return nil
	}
	c := &command{name: args[0], out: out, diag: diag, size: 256 << 20}
	fs := flag.NewFlagSet("filecopy "+c.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the error says what is wrong, once
	least, most, do := c.define(fs)
	if do == nil {
		return program.UsageError("no such command: " + c.name + ": filecopy help lists them")
	}
	err := fs.Parse(args[1:])
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(out, usage)
		fs.SetOutput(out)
		fs.PrintDefaults()
		return nil
	}
	if err == nil {
		if c.args = fs.Args(); len(c.args) < least || len(c.args) > most {
			err = errors.New("wrong number of arguments")
		}
	}
	if err == nil {
		err = c.Check(c.trace != "")
	}
	if err != nil {
		return program.UsageError(c.name + ": " + err.Error() + ": filecopy help says how it is called")
	}
	return do(ctx)
}

// define defines the flags of the command, and returns how many arguments it takes and the function that executes it.
func (c *command) define(fs *flag.FlagSet) (least, most int, do func(context.Context) error) {
	fs.BoolVar(&c.NoCRC, "nocrc", false, "waive the CRC32c of MPA (it is used if either side wants it)")
	fs.StringVar(&c.Network, "network", "tcp", "the `network`: tcp, sctp or sctp+udp")
	fs.Float64Var(&c.Loss, "loss", 0, "throw away so many `percent` of what is sent over sctp+udp")
	if c.name != "demo" {
		fs.StringVar(&c.addr, "addr", transfer.DefaultAddr, "the server's `address`")
	}
	if c.name != "serve" {
		fs.StringVar(&c.trace, "trace", "", "write the connection to this pcap `file`")
	}
	switch c.name {
	case "serve":
		return 1, 1, c.serve
	case "put":
		return 1, 2, c.put
	case "get":
		return 1, 2, c.get
	case "demo":
		fs.Var(&c.size, "size", "the `size` of the file, as in 100000, 64MiB or 5GiB")
		return 0, 0, c.demo
	}
	return 0, 0, nil
}

// arg returns the i-th argument, or def if there are fewer.
func (c *command) arg(i int, def string) string {
	if i < len(c.args) {
		return c.args[i]
	}
	return def
}

// serve prints the address as the first line, then serves until ctx ends.
func (c *command) serve(ctx context.Context) error {
	log := slog.New(slog.NewTextHandler(c.diag, nil))
	s, err := transfer.Listen(ctx, c.Link, c.addr, c.args[0], log)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out, s.Addr())
	return s.Run(ctx)
}

func (c *command) put(ctx context.Context) error {
	local := c.args[0]
	name := c.arg(1, filepath.Base(local))
	return c.transfer(ctx, local, func(cl *transfer.Client) (*transfer.Result, error) { return cl.Put(ctx, local, name) })
}

func (c *command) get(ctx context.Context) error {
	name := c.args[0]
	local := c.arg(1, path.Base(name))
	return c.transfer(ctx, local, func(cl *transfer.Client) (*transfer.Result, error) { return cl.Get(ctx, name, local) })
}

// transfer performs one transfer of a local file, on its own connection.
func (c *command) transfer(ctx context.Context, local string, do func(*transfer.Client) (*transfer.Result, error)) error {
	if err := transfer.CheckFile(local); err != nil {
		return program.UsageError(c.name + ": " + err.Error())
	}
	trace, err := transfer.OpenTrace(c.trace, local)
	if err != nil {
		return err
	}
	cl, err := transfer.Dial(ctx, transfer.DialOptions{Link: c.Link, Addr: c.addr, Trace: trace, Bar: c.diag})
	if err != nil {
		return err
	}
	defer cl.Close() //nolint:errcheck // it may be closed already, or something has failed before
	r, err := do(cl)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out, r)
	fmt.Fprintln(c.out, "SHA-256", r.Sum)
	return cl.Close()
}

func (c *command) demo(ctx context.Context) error {
	trace, err := transfer.OpenTrace(c.trace, "")
	if err != nil {
		return err
	}
	d := &transfer.Demonstration{Link: c.Link, Size: int64(c.size), Trace: trace, Bar: c.diag}
	_, err = d.Run(ctx, c.out)
	return err
}
