// Package connectperf measures the set-up of connections: one after the other, with a goroutine
// for each, and by cm.DialMany; with and without authentication; with a peer that answers at once,
// or late. The baseline is raw: as many TCP connections that exchange 24 octets. The server and
// the client are processes of their own.
package connectperf

import (
	"context"
	"encoding/json"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/authmode"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

type options struct {
	json    bool
	serve   bool   // be the server
	client  string // be the client of the server with that address
	grid    grid
	chosen  bool // the grid was given
	repeats int
}

// Command is the command "iwarp perf connect".
func Command() *cobra.Command {
	o := &options{grid: grid{
		n: numbers{1, 16, 64, 256, 1024, 4096}, delay: times{0}, how: words{howMany}, auth: words{authmode.Plain}, window: numbers{256},
	}}
	cmd := &cobra.Command{
		Use: "connect", Short: "measure the set-up of connections", Args: cli.NoArgs,
		Long: `Measures the set-up of connections, in two processes: one after the other, with a goroutine for each, and by
cm.DialMany. Without flags it prints what was measured beside each target. The flags --conns, --delay, --how, --auth and
--window choose single points instead.`,
		Example: "  iwarp perf connect --conns 1024 --how each,many",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := cli.StreamsOf(cmd)
			o.chosen = slices.ContainsFunc([]string{"conns", "delay", "how", "auth", "window"}, cmd.Flags().Changed)
			return o.run(cmd.Context(), s)
		},
	}
	o.flags(cmd.Flags())
	cli.Hide(cmd, "serve", "client")
	cli.Renamed(cmd, "n", "--conns")
	return cmd
}

func (o *options) flags(fs *pflag.FlagSet) {
	fs.Var(&o.grid.n, "conns", "how many connections")
	fs.Var(&o.grid.delay, "delay", "by how much each answer of the peer is delayed: 0,1ms,10ms,30ms")
	fs.Var(&o.grid.how, "how", "serial, each (a goroutine for each), many (cm.DialMany)")
	fs.Var(&o.grid.auth, "auth", "plain, a, b (cm's modes), b2 (mode B, suite 2), tls (TLS 1.3)")
	fs.Var(&o.grid.window, "window", "with --how many: how many set-ups are in progress at a time")
	fs.IntVar(&o.repeats, "repeats", 0, "how often each point is measured; 0: 3, or what the targets need")
	fs.BoolVar(&o.json, "json", false, "print JSON")
	fs.BoolVar(&o.serve, "serve", false, "be a server, as which the command starts itself, until stdin ends")
	fs.StringVar(&o.client, "client", "", "be the client, as which the command starts itself, of the server at this address")
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	switch {
	case o.serve:
		return serve(ctx, o.grid.delay[0], s.In, s.Out)
	case o.client != "":
		return runClient(ctx, o.client, s.In, s.Out)
	}
	if o.repeats < 0 {
		return cli.Usagef("--repeats is not negative")
	}
	if err := o.grid.check(peer.OpenFiles()); err != nil {
		return err
	}
	progress := cli.NewProgress(s.Err)
	defer progress.Clear()
	if o.chosen {
		return runGrid(ctx, o, s, progress)
	}
	return runMarks(ctx, o, s, progress)
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
