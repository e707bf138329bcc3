package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/goiwarp/iwarp/examples/kvstore/kv"
)

// childEnv tells the tests' program to run as kvstore.
const childEnv = "KVSTORE_CHILD"

// plainWay is the way that has a target.
const plainWay = "plain"

// target is the ratio of plain Gets to the baseline's Gets, per processor second of the server, that must be reached.
const target = 1.2

var errMissed = errors.New("the target is missed")

// A way is one of the ways to get values.
type way struct {
	name string
	gets func(ctx context.Context, n int) error
	end  func() error
	n    int       // Gets of a run
	rate []float64 // Gets per processor second of the server, by run
	wall []float64 // Gets per second
}

// A bench is a measurement.
type bench struct {
	o      *options
	server *benchChild
	keys   [][]byte
	values [][]byte
	order  []int // of the Gets
	wrong  int   // Gets that returned a wrong value
	ways   []*way
}

// runBench measures all ways in turn, and compares them.
func runBench(ctx context.Context, o *options, out io.Writer) (err error) {
	b := &bench{o: o}
	for i := range o.keys {
		b.keys, b.values = append(b.keys, benchKey(i)), append(b.values, benchValue(i))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 1 << 16 {
		b.order = append(b.order, random.IntN(o.keys))
	}
	if b.server, err = startBenchChild(ctx, o); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.server.stop()) }()
	if err := b.connect(ctx); err != nil {
		return err
	}
	defer func() {
		for _, w := range b.ways {
			err = errors.Join(err, w.end())
		}
	}()
	for _, w := range b.ways {
		if err := b.warm(ctx, w); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	for range o.pairs {
		for _, w := range b.ways {
			if err := b.run(ctx, w); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	return b.report(out)
}

func (b *bench) key(i int) []byte { return b.keys[b.order[i%len(b.order)]] }

func (b *bench) got(i int, value []byte) {
	if !bytes.Equal(value, b.values[b.order[i%len(b.order)]]) {
		b.wrong++
	}
}

// connect makes the ways; the last one is the baseline.
func (b *bench) connect(ctx context.Context) error {
	key, err := kv.TenantKey(benchMaster, benchTenant)
	if err != nil {
		return err
	}
	got := func(i int, v kv.Verdict, value []byte) {
		if v != kv.Found {
			value = nil
		}
		b.got(i, value)
	}
	for _, w := range []struct {
		name      string
		plain     bool
		locations int
	}{{plainWay, true, 0}, {"plain, locations remembered", true, b.o.keys}, {"sealed", false, 0}, {"sealed, locations remembered", false, b.o.keys}} {
		p, err := kv.OpenPipeline(ctx, &kv.PipelineConfig{
			Network: "tcp", Addr: b.server.hello.Store, Tenant: benchTenant, Key: key, Depth: b.o.depth, Plain: w.plain, Locations: w.locations,
		})
		if err != nil {
			return err
		}
		gets := func(ctx context.Context, n int) error { return p.Gets(ctx, n, b.key, got) }
		b.ways = append(b.ways, &way{name: w.name, end: p.Close, gets: gets})
	}
	t, err := dialTCP(b.server.hello.TCP, b.o.depth)
	if err != nil {
		return err
	}
	b.ways = append(b.ways, &way{name: "tcp", end: t.close, gets: func(_ context.Context, n int) error { return t.gets(n, b.key, b.got) }})
	return nil
}

// warm determines how many Gets take the time of a run.
func (b *bench) warm(ctx context.Context, w *way) error {
	for w.n = max(b.o.depth, 2*b.o.keys); ; w.n *= 2 {
		began := time.Now()
		if err := w.gets(ctx, w.n); err != nil {
			return err
		}
		if took := time.Since(began); took > b.o.span/2 {
			w.n = max(int(float64(w.n)*b.o.span.Seconds()/took.Seconds()), 1)
			return nil
		}
	}
}

// run performs one run. The connection has been idle, so some Gets precede the run.
func (b *bench) run(ctx context.Context, w *way) error {
	if err := w.gets(ctx, max(w.n/20, 1)); err != nil {
		return err
	}
	before, err := b.server.used()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := w.gets(ctx, w.n); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := b.server.used()
	if err != nil {
		return err
	}
	w.rate = append(w.rate, float64(w.n)/(after-before).Seconds())
	w.wall = append(w.wall, float64(w.n)/took.Seconds())
	return nil
}

// report prints the medians, and compares them.
func (b *bench) report(out io.Writer) error {
	if b.wrong > 0 {
		return fmt.Errorf("%d values were not those of their keys", b.wrong)
	}
	fmt.Fprintf(out, "Gets of values of 64 octets, %d under way, %d keys, medians of %d interleaved runs of %v\n", b.o.depth, b.o.keys, b.o.pairs, b.o.span)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "way\tGets per CPU second of the server\tCPU per Get\tGets/s\tratio to tcp\ttarget\tmet\t")
	base := b.ways[len(b.ways)-1]
	missed := false
	for _, w := range b.ways {
		ratios := make([]float64, len(w.rate))
		for i := range ratios {
			ratios[i] = w.rate[i] / base.rate[i]
		}
		rate, ratio := median(w.rate), median(ratios)
		goal, met := "-", "-"
		if w.name == plainWay {
			goal, met = fmt.Sprint(target), "yes"
			if ratio < target {
				missed, met = true, "no"
			}
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.3f us\t%.0f\t%.2f\t%s\t%s\t\n", w.name, rate, 1e6/rate, median(w.wall), ratio, goal, met)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if missed {
		return errMissed
	}
	return nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// A benchChild is the server in a separate process.
type benchChild struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
	hello   benchHello
}

// stopTime is how long a server that is to end may take.
const stopTime = 5 * time.Second

func startBenchChild(ctx context.Context, o *options) (*benchChild, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &benchChild{cmd: exec.CommandContext(ctx, exe, "benchserver", "-keys", fmt.Sprint(o.keys), "-depth", fmt.Sprint(o.depth))}
	c.cmd.Env = append(os.Environ(), childEnv+"=1")
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	c.cmd.Cancel, c.cmd.WaitDelay = c.in.Close, stopTime // it ends by itself, and removes its files
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, c.in.Close())
	}
	if err := c.cmd.Start(); err != nil { // Start has closed the pipes
		return nil, err
	}
	c.answers = json.NewDecoder(stdout)
	if err := c.answers.Decode(&c.hello); err != nil {
		stopped := c.stop()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, errors.Join(fmt.Errorf("the server does not start: %w", err), stopped)
	}
	return c, nil
}

// used returns the processor time that the server has used.
func (c *benchChild) used() (d time.Duration, err error) {
	if _, err := fmt.Fprintln(c.in); err != nil {
		return 0, err
	}
	err = c.answers.Decode(&d)
	return d, err
}

// stop ends the input of the server, and waits until it has ended.
func (c *benchChild) stop() error {
	_ = c.in.Close() // the end of the context has closed it already
	return c.cmd.Wait()
}
