package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/exporter"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// Command is the command "iwarp perf": a server, a client, or both in two processes. Its error is marks.ErrMissed if a
// suite ran but a target was missed or a case could not be measured.
func Command() *cobra.Command {
	o := newOptions()
	cmd := &cobra.Command{
		Use: "perf", Short: "measure the library against plain TCP and other baselines", Args: cli.NoArgs,
		Long: `Measures operations between two processes, and compares each with a baseline, in turn, in pairs of runs. Without --serve
and --connect the command starts itself once more, and the server runs in that process. The default takes about a
minute. The baselines tcp and tls are streams of octets without operations: compare small operations with
--baseline reqresp. Other measurements have commands of their own.`,
		Example: `  iwarp perf --op write,read --size 4K,1M
  iwarp perf --op pingpong --size 64 --poll 50us     # p50, p99 and p99.9
  iwarp perf --suite standard --html perf.html       # all cases with their targets
  iwarp perf --suite standard --scrape 1s            # what it costs to scrape the metrics
  iwarp perf --serve --addr 192.0.2.1:7175           # a server; and on another machine:
  iwarp perf --connect 192.0.2.1:7175 --op read --size 1M`,
		Annotations: map[string]string{cli.ServedBy: "iwarp perf --serve"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			o.args = given(cmd.Flags())
			return o.run(cmd.Context(), cli.StreamsOf(cmd))
		},
	}
	o.flags(cmd.Flags())
	for old, now := range map[string]string{"s": "--serve", "c": "--connect ADDRESS", "a": "--addr ADDRESS"} {
		cli.Renamed(cmd, old, now)
	}
	return cmd
}

// given returns the flags that were given, as a user may write them.
func given(fs *pflag.FlagSet) string {
	var all []string
	fs.Visit(func(f *pflag.Flag) { all = append(all, "--"+f.Name+"="+f.Value.String()) })
	return strings.Join(all, " ")
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	if o.metrics == "" {
		return o.role(ctx, s)
	}
	e, err := exported.Serve(ctx, o.metrics)
	if err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	side := "client"
	if o.server {
		side = "server"
	}
	fmt.Fprintf(s.Err, "live page of the %s: %s\n", side, e.URL())
	return errors.Join(o.role(ctx, s), e.Close())
}

// role runs the server, the client, or both.
func (o *options) role(ctx context.Context, s cli.Streams) error {
	peer.OpenFiles()
	if o.server {
		return peer.Profiled(o.profile, func() error { return serveAt(ctx, o, s.Out) })
	}
	if err := cli.CanWrite(o.html); err != nil {
		return err
	}
	o.progress = cli.NewProgress(s.Err)
	defer o.progress.Clear()
	if o.client != "" {
		c, err := dialServer(ctx, o.client)
		if err != nil {
			return err
		}
		defer c.Close() //nolint:errcheck // nothing is lost with it
		return peer.Profiled(o.profile, func() error { return o.measure(ctx, c, s) })
	}
	return both(ctx, o, s)
}

func serveAt(ctx context.Context, o *options, stdout io.Writer) error {
	host, _, err := net.SplitHostPort(o.addr)
	if err != nil {
		return cli.UsageError("--addr: " + err.Error())
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.addr)
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // nothing is lost with it
	if o.json {
		_ = json.NewEncoder(stdout).Encode(map[string]string{"addr": l.Addr().String()}) // a server goes on without it
	} else {
		peer.Announce(stdout, l.Addr())
	}
	return (&server{host: host}).serve(ctx, l, o.once)
}

// both runs the server in a child.
func both(ctx context.Context, o *options, s cli.Streams) error {
	var args []string
	if o.profile != "" {
		args = []string{"--cpuprofile", o.profile + ".server"}
	}
	next, err := exporter.Next(o.metrics)
	if err != nil {
		return err
	}
	if next != "" {
		args = append(args, "--metrics", next)
	}
	k, err := startChild(ctx, s.Err, args...)
	if err != nil {
		return err
	}
	profile := o.profile
	if profile != "" {
		profile += ".client"
	}
	err = peer.Profiled(profile, func() error { return o.measure(ctx, k.c, s) })
	return errors.Join(err, k.stop())
}
