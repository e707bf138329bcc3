// Package top is "iwarp top": a page on the terminal that shows the activity of a running process's connections, as read from
// package monitor in that process. What the page shows and what keys do is a model without I/O (model.go); Bubble Tea runs it.
package top

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/monitor"
)

// shortest is the shortest interval: a server has something new in each.
const shortest = 200 * time.Millisecond

// patience is how much longer than an interval an answer may take.
const patience = 3 * time.Second

// options are the flags.
type options struct {
	interval   time.Duration
	once, json bool
	count      int
	sort       string
	filter     string
}

// Command is "iwarp top".
func Command() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use: "top [ADDRESS]", Short: "show the connections of a running process, live", Args: cli.Args(0, 1),
		Long: `Shows the activity of a process's connections: rates, latencies, errors, and a line for each. ADDRESS is HOST:PORT or a URL:
that of iwarp perf --metrics, of iwarp serve --http, or of a program that serves monitor.NewHandler. The default
is ` + DefaultAddr + `. The first key to know is ?, which lists the others.

The command waits two seconds for a process that does not listen there yet. If the process ends, the last numbers stay
until another one answers there. There are no colours if NO_COLOR is set.`,
		Example: `  iwarp perf --metrics 127.0.0.1:9464 & iwarp top
  iwarp top --once --filter 192.0.2. http://192.0.2.1:8080/iwarp/
  iwarp top --json --count 10 | jq .received_rate`,
		Annotations: map[string]string{cli.ServedBy: "iwarp perf --metrics, iwarp serve --http, or a program with monitor.NewHandler"},
		RunE: func(cmd *cobra.Command, args []string) error {
			address := DefaultAddr
			if len(args) > 0 {
				address = args[0]
			}
			return o.run(cmd.Context(), address, cli.StreamsOf(cmd))
		},
	}
	fs := cmd.Flags()
	fs.DurationVar(&o.interval, "interval", time.Second, "`TIME` between two updates, over which rates are taken")
	fs.BoolVar(&o.once, "once", false, "print the page once, as text, after one interval")
	fs.BoolVar(&o.json, "json", false, "print JSON, one object on a line for each interval")
	fs.IntVarP(&o.count, "count", "n", 0, "with --json: end after `N` lines; 0: never")
	fs.StringVar(&o.sort, "sort", string(monitor.ByRate), "order of the connections, by `COLUMN`: "+orders())
	fs.StringVar(&o.filter, "filter", "", "only connections with all of these `WORDS` in their addresses, peer, path or state")
	return cmd
}

// orders returns the values of --sort.
func orders() string {
	all := []string{string(monitor.ByRate)}
	for _, c := range columns {
		all = append(all, string(c.by))
	}
	return strings.Join(all, ", ")
}

// check refuses flags that have no meaning.
func (o *options) check() error {
	switch {
	case o.interval < shortest:
		return cli.Usagef("--interval %v: want %v or more", o.interval, shortest)
	case !monitor.Column(o.sort).Known():
		return cli.Usagef("--sort %q: want one of %s", o.sort, orders())
	case o.count < 0:
		return cli.Usagef("--count %d: want a number of lines, or 0", o.count)
	case o.count > 0 && (!o.json || o.once):
		return cli.Usagef("--count is for --json without --once")
	}
	return nil
}

func (o *options) run(ctx context.Context, address string, s cli.Streams) error {
	if err := o.check(); err != nil {
		return err
	}
	from, err := newSource(address)
	if err != nil {
		return err
	}
	defer from.close()
	in, keys := cli.Terminal(s.In)
	out, screen := cli.Terminal(s.Out)
	live := !o.once && !o.json
	if live && (!keys || !screen) {
		return cli.Usagef("no terminal to read keys from and to draw on: --once prints the page as text, --json as JSON")
	}
	first, err := from.first(ctx, o.interval+patience)
	if err != nil {
		return err
	}
	if live {
		return o.live(ctx, from, first, in, out)
	}
	return o.print(ctx, from, first, s.Out)
}

// live shows the page until it is left.
func (o *options) live(ctx context.Context, from *source, first *monitor.State, in io.Reader, out io.Writer, more ...tea.ProgramOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newModel(o, first, func() (*monitor.State, error) { return from.fetch(ctx, o.interval+patience) })
	m.palette = newPalette(os.Getenv("NO_COLOR") == "")
	p := tea.NewProgram(m, append(more, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())...)
	defer context.AfterFunc(ctx, p.Quit)() // Kill would leave the goroutine that reads keys behind
	_, err := p.Run()
	switch {
	case err != nil:
		return fmt.Errorf("the terminal: %w", err)
	case ctx.Err() != nil: // by a signal
		return ctx.Err()
	case m.interrupted:
		return cli.ErrInterrupted
	}
	return nil
}
