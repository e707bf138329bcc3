package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"path/filepath"

	"github.com/goiwarp/iwarp"
)

const usage = `usage:
  filecopy serve [-network NETWORK] [-addr HOST:PORT] [-nocrc] DIR
  filecopy put [-network NETWORK] [-addr HOST:PORT] [-nocrc] [-trace PCAP] FILE [NAME]
  filecopy get [-network NETWORK] [-addr HOST:PORT] [-nocrc] [-trace PCAP] NAME [FILE]
  filecopy demo [-network NETWORK] [-loss PERCENT] [-size SIZE] [-nocrc] [-trace PCAP]

NETWORK is tcp, or DDP over SCTP: sctp, the kernel's, or sctp+udp, in user space.`

// A usageError says what is wrong with a command line, and how it should be.
type usageError string

func (e usageError) Error() string { return string(e) + "\n" + usage }

const defaultAddr = "127.0.0.1:7471"

// A command is one subcommand with its flags and what it writes to. Results go to
// out, the log and the progress bar to diag.
type command struct {
	name      string
	out, diag *os.File
	args      []string // what is left after the flags

	link
	addr  string
	trace string
	size  size
}

// A link is how both sides of a connection make it.
type link struct {
	network string
	noCRC   bool
	loss    float64 // percent of the UDP datagrams that are thrown away
}

// open makes an RNIC that has this link.
func (k link) open(cfg iwarp.Config) (*iwarp.RNIC, error) {
	if k.loss > 0 {
		cfg.ListenPacket = k.listenPacket
	}
	return iwarp.Open(&cfg)
}

// run does what the command line asks for.
func run(ctx context.Context, args []string, out, diag *os.File) error {
	if len(args) == 0 {
		return usageError("no command")
	}
	c := &command{name: args[0], out: out, diag: diag, size: 256 << 20}
	fs := flag.NewFlagSet("filecopy "+c.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the error says what is wrong, once
	fs.BoolVar(&c.noCRC, "nocrc", false, "waive the CRC32c of MPA (it is used if either side wants it)")
	fs.StringVar(&c.network, "network", "tcp", "the `network`: tcp, sctp or sctp+udp")
	fs.Float64Var(&c.loss, "loss", 0, "throw away so many `percent` of what is sent over sctp+udp")
	if c.name != "demo" {
		fs.StringVar(&c.addr, "addr", defaultAddr, "the server's `address`")
	}
	if c.name != "serve" {
		fs.StringVar(&c.trace, "trace", "", "write the connection to this pcap `file`")
	}

	var least, most int
	var do func(context.Context) error
	switch c.name {
	case "serve":
		least, most, do = 1, 1, c.serve
	case "put":
		least, most, do = 1, 2, c.put
	case "get":
		least, most, do = 1, 2, c.get
	case "demo":
		fs.Var(&c.size, "size", "the `size` of the file, as in 100000, 64MiB or 5GiB")
		do = c.demo
	case "help", "-h", "-help", "--help":
		fmt.Fprintln(out, usage)
		return nil
	default:
		return usageError("no such command: " + c.name)
	}
	switch err := fs.Parse(args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(out, usage)
		fs.SetOutput(out)
		fs.PrintDefaults()
		return nil
	case err != nil:
		return usageError(c.name + ": " + err.Error())
	}
	if c.args = fs.Args(); len(c.args) < least || len(c.args) > most {
		return usageError(c.name + ": wrong number of arguments")
	}
	return do(ctx)
}

// arg returns the i-th argument, or def if there are not so many.
func (c *command) arg(i int, def string) string {
	if i < len(c.args) {
		return c.args[i]
	}
	return def
}

// serve prints the address as the first line, then serves until ctx ends.
func (c *command) serve(ctx context.Context) error {
	log := slog.New(slog.NewTextHandler(c.diag, nil))
	s, err := listen(ctx, c.link, c.addr, c.args[0], log)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out, s.addr())
	return s.run(ctx)
}

func (c *command) put(ctx context.Context) error {
	local := c.args[0]
	name := c.arg(1, filepath.Base(local))
	return c.transfer(ctx, func(cl *client) (*result, error) { return cl.put(ctx, local, name) })
}

func (c *command) get(ctx context.Context) error {
	name := c.args[0]
	local := c.arg(1, path.Base(name))
	return c.transfer(ctx, func(cl *client) (*result, error) { return cl.get(ctx, name, local) })
}

// transfer does one transfer on a connection of its own.
func (c *command) transfer(ctx context.Context, do func(*client) (*result, error)) error {
	cl, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer quietly(cl)
	r, err := do(cl)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out, r)
	fmt.Fprintln(c.out, "SHA-256", r.sum)
	return cl.Close()
}

// connect dials the server with what the flags say.
func (c *command) connect(ctx context.Context) (*client, error) {
	o := dialOptions{link: c.link, addr: c.addr, bar: c.diag}
	if c.trace != "" {
		f, err := os.Create(c.trace)
		if err != nil {
			return nil, err
		}
		o.trace = f
	}
	return dial(ctx, o)
}
