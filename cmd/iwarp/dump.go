package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/internal/dump"
)

// dumping holds the flags of iwarp dump.
type dumping struct {
	json, follow bool
	protocols    []string
}

func dumpCommand() *cobra.Command {
	c := &dumping{}
	cmd := &cobra.Command{
		Use: "dump FILE", Short: "decode a packet capture: a line for each FPDU", Args: cli.Args(1, 1),
		Long: `Decodes MPA, DDP and RDMAP over TCP, and DDP over SCTP, in a pcap or pcapng capture by tcpdump, Wireshark or
QPConfig.Trace. FILE - is the standard input. Prints one line for each FPDU and each frame of set-up; what is
wrong with it comes last, behind a !, with the section of the RFC.

Protocols that the private data or the ports of a connection identify are decoded, too: set-up of package cm, Commit, rma,
rsocket, NVMe and RPC over RDMA. --protocol names the protocol of another port.`,
		Example: `  iwarp dump trace.pcap
  iwarp dump --follow trace.pcap                   while QPConfig.Trace writes it
  tcpdump -i eth0 -U -w - port 7471 | iwarp dump -`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON, one object on each line")
	cmd.Flags().BoolVar(&c.follow, "follow", false, "at the end of the file, wait for it to grow; a pipe ends with its writer")
	cmd.Flags().StringSliceVar(&c.protocols, "protocol", nil, "`PORT=NAME`: the protocol above RDMAP at a port of the responder; "+strings.Join(dump.Protocols(), ", "))
	return cmd
}

func (c *dumping) run(cmd *cobra.Command, name string) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	streams := cli.StreamsOf(cmd)
	in := streams.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	if c.follow && grows(in) {
		in = &growing{cmd.Context(), in}
	}
	done := make(chan error, 1)
	go func() { done <- c.decode(in, streams.Out, cfg) }() // a Read of a pipe does not end with the context
	select {
	case err := <-done:
		if cmd.Context().Err() != nil { // only the end of the context ends a file that is followed
			return cmd.Context().Err()
		}
		return err
	case <-cmd.Context().Done():
		return cmd.Context().Err()
	}
}

// decode prints what is decoded. Before it waits for more of the capture, it flushes the output.
func (c *dumping) decode(in io.Reader, to io.Writer, cfg dump.Config) error {
	out := bufio.NewWriter(to)
	var printer dump.Printer
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	r := &flushing{r: bufio.NewReaderSize(in, 1<<16), out: out}
	err := dump.Capture(r, cfg, func(records []dump.Record) error {
		for i := range records {
			var err error
			if c.json {
				err = encoder.Encode(&records[i])
			} else {
				_, err = fmt.Fprintln(out, printer.Line(&records[i]))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if flushErr := out.Flush(); flushErr != nil {
		return flushErr // it may come from a flush before a read, and then looks like an error of the capture
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) { // the end of a file, not of a connection
		return fmt.Errorf("%s: the capture is cut short", err.Error())
	}
	return err
}

func (c *dumping) config() (dump.Config, error) {
	cfg := dump.Config{Protocols: map[uint16]string{}}
	for _, p := range c.protocols {
		port, name, _ := strings.Cut(p, "=")
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || !dump.IsProtocol(name) {
			return cfg, cli.Usagef("--protocol %s: want PORT=NAME, and a name of %s", p, strings.Join(dump.Protocols(), ", "))
		}
		cfg.Protocols[uint16(n)] = name
	}
	return cfg, nil
}

// flushing flushes the output before a read that may wait.
type flushing struct {
	r   *bufio.Reader
	out *bufio.Writer
}

func (f *flushing) Read(p []byte) (int, error) {
	if f.r.Buffered() == 0 {
		if err := f.out.Flush(); err != nil {
			return 0, err
		}
	}
	return f.r.Read(p)
}

// grows reports whether in may grow after its end. A pipe does not.
func grows(in io.Reader) bool {
	file, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular()
}

// A growing is a reader that waits for more at the end of a file.
type growing struct {
	ctx context.Context
	r   io.Reader
}

func (f *growing) Read(p []byte) (int, error) {
	const interval = 50 * time.Millisecond
	for {
		n, err := f.r.Read(p)
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		select {
		case <-f.ctx.Done():
			return 0, io.EOF
		case <-time.After(interval):
		}
	}
}
