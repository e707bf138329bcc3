// Package connectperf measures the set-up of connections: one after the other, with a goroutine
// for each, and by cm.DialMany; with and without authentication; with a peer that answers at once,
// or late. The baseline is raw: as many TCP connections with 24 octets to and fro. The server and
// the client are processes of their own.
package connectperf

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/authmode"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

type options struct {
	json    bool
	serve   bool          // be the server
	delay   time.Duration // of the server
	client  string        // be the client of the server with that address
	grid    grid
	chosen  bool // the grid was given
	repeats int
}

// Main is the command "iwarp perf connect".
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	switch {
	case err != nil:
		return err
	case o.serve:
		return serve(ctx, o.delay, stdin, stdout)
	case o.client != "":
		return runClient(ctx, o.client, stdin, stdout)
	case o.chosen:
		return runGrid(ctx, o, stdout, stderr)
	}
	return runMarks(ctx, o, stdout, stderr)
}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{grid: grid{
		n: numbers{1, 16, 64, 256, 1024, 4096}, delay: times{0}, how: words{howMany}, auth: words{authmode.Plain}, window: numbers{256},
	}}
	fs := flag.NewFlagSet("iwarp perf connect", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Var(&o.grid.n, "n", "how many connections")
	fs.Var(&o.grid.delay, "delay", "by how much each answer of the peer is late: 0,1ms,10ms,30ms")
	fs.Var(&o.grid.how, "how", "serial, each (a goroutine for each), many (cm.DialMany)")
	fs.Var(&o.grid.auth, "auth", "plain, a, b (cm's modes), b2 (mode B, suite 2), tls (TLS 1.3)")
	fs.Var(&o.grid.window, "window", "of -how many: how many set-ups are under way at a time")
	fs.IntVar(&o.repeats, "repeats", 0, "how often each point is measured; 0: 3, or what the marks need")
	fs.BoolVar(&o.json, "json", false, "print JSON")
	fs.BoolVar(&o.serve, "s", false, "be a server, as which the command starts itself, until stdin ends")
	fs.StringVar(&o.client, "c", "", "be the client, as which the command starts itself, of the server at this address")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	fs.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "n", "delay", "how", "auth", "window":
			o.chosen = true
		}
	})
	if o.serve {
		o.delay = o.grid.delay[0]
		return o, nil
	}
	return o, o.grid.check(peer.OpenFiles())
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
