package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/examples/filecopy/transfer"
)

// A copying holds the flags of the commands that copy files.
type copying struct {
	transfer.Link
	addr, trace string
	http        string // of the live page; empty: none
	json, quiet bool
}

// linkFlags defines the flags of both sides.
func (c *copying) linkFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&c.Network, "network", "tcp", "tcp, or, for DDP over SCTP, sctp (the kernel's) or sctp+udp (in user space)")
	fs.BoolVar(&c.NoCRC, "nocrc", false, "waive the CRC32c of MPA, which is used if either side wants it")
	fs.Var((*percent)(&c.Loss), "loss", "drop this `percent`age of what is sent over sctp+udp")
	fs.BoolVar(&c.json, "json", false, "print JSON")
}

// percent is a flag from 0 to 100.
type percent float64

func (p *percent) String() string { return strconv.FormatFloat(float64(*p), 'g', -1, 64) }

// Type returns the type that the help shows.
func (p *percent) Type() string { return "percent" }

func (p *percent) Set(s string) error {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v <= 100) {
		return errors.New("want 0 to 100")
	}
	*p = percent(v)
	return nil
}

// clientFlags defines the flags of a client.
func (c *copying) clientFlags(cmd *cobra.Command) {
	c.linkFlags(cmd)
	fs := cmd.Flags()
	fs.StringVar(&c.trace, "trace", "", "write a pcap of the connection to `FILE`")
	fs.BoolVarP(&c.quiet, "quiet", "q", false, "print nothing, and show no progress")
}

// addrFlag defines the flag of the server's address.
func (c *copying) addrFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.addr, "addr", transfer.DefaultAddr, "`ADDRESS` of the server, host:port")
}

// streams returns the streams of a client. With --quiet it prints nothing but JSON.
func (c *copying) streams(cmd *cobra.Command) cli.Streams {
	s := cli.StreamsOf(cmd)
	if c.quiet {
		s.Err = io.Discard
	}
	if c.quiet && !c.json {
		s.Out = io.Discard
	}
	return s
}

func putCommand() *cobra.Command {
	c := &copying{}
	cmd := &cobra.Command{
		Use: "put FILE [NAME]", Short: "copy a file to a server, by RDMA Writes", Args: cli.Args(1, 2),
		Example:     "  iwarp put --addr 192.0.2.1:7471 disk.img",
		Annotations: map[string]string{cli.ServedBy: "iwarp serve"},
		RunE: func(cmd *cobra.Command, args []string) error {
			name := filepath.Base(args[0])
			if len(args) > 1 {
				name = args[1]
			}
			return c.transfer(cmd, args[0], func(ctx context.Context, cl *transfer.Client) (*transfer.Result, error) {
				return cl.Put(ctx, args[0], name)
			})
		},
	}
	c.clientFlags(cmd)
	c.addrFlag(cmd)
	return cmd
}

func getCommand() *cobra.Command {
	c := &copying{}
	cmd := &cobra.Command{
		Use: "get NAME [FILE]", Short: "copy a file from a server, by RDMA Reads", Args: cli.Args(1, 2),
		Example:     "  iwarp get --addr 192.0.2.1:7471 disk.img",
		Annotations: map[string]string{cli.ServedBy: "iwarp serve"},
		RunE: func(cmd *cobra.Command, args []string) error {
			local := path.Base(args[0])
			if len(args) > 1 {
				local = args[1]
			}
			return c.transfer(cmd, local, func(ctx context.Context, cl *transfer.Client) (*transfer.Result, error) {
				return cl.Get(ctx, args[0], local)
			})
		},
	}
	c.clientFlags(cmd)
	c.addrFlag(cmd)
	return cmd
}

// transfer does one transfer, of a local file, on a connection of its own.
func (c *copying) transfer(cmd *cobra.Command, local string, do func(context.Context, *transfer.Client) (*transfer.Result, error)) error {
	if err := transfer.CheckFile(local); err != nil {
		return cli.UsageError(err.Error())
	}
	trace, err := c.openTrace(local)
	if err != nil {
		return err
	}
	s := c.streams(cmd)
	cl, err := transfer.Dial(cmd.Context(), transfer.DialOptions{Link: c.Link, Addr: c.addr, Trace: trace, Bar: s.Err})
	if err != nil {
		return err
	}
	defer cl.Close() //nolint:errcheck // it may be closed already, or an earlier error counts
	r, err := do(cmd.Context(), cl)
	if err != nil {
		return err
	}
	if c.json {
		err = json.NewEncoder(s.Out).Encode(r)
	} else {
		_, err = fmt.Fprintf(s.Out, "%v\nSHA-256 %s\n", r, r.Sum)
	}
	if err != nil {
		return err
	}
	return cl.Close()
}

// check refuses impossible combinations, and flags that would do nothing.
func (c *copying) check() error {
	if err := c.Check(c.trace != ""); err != nil {
		return cli.UsageError(err.Error())
	}
	return nil
}

// openTrace checks the flags, and opens the trace file, if there is to be one. copied is as in transfer.OpenTrace.
func (c *copying) openTrace(copied string) (io.WriteCloser, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return transfer.OpenTrace(c.trace, copied)
}
