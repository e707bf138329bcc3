package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
)

// ErrMissed is what Main returns when a suite ran but a target was missed or a case
// could not be measured.
var ErrMissed = errors.New("not all targets are met")

// Main is the command "iwarp perf": a server, a client, or both in two processes. An
// error that matches UsageError means that it was called wrongly.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	openFiles()
	if o.server {
		return profiled(o.profile, func() error { return serveAt(ctx, o, stdout) })
	}
	if o.client != "" {
		d := net.Dialer{Timeout: dialTimeout}
		c, err := d.DialContext(ctx, "tcp", o.client)
		if err != nil {
			return err
		}
		defer c.Close() //nolint:errcheck // nothing is lost with it
		return o.measure(ctx, c, stdout, stderr)
	}
	return alone(ctx, o, stdout, stderr)
}

func serveAt(ctx context.Context, o *options, stdout io.Writer) error {
	host, _, err := net.SplitHostPort(o.addr)
	if err != nil {
		return UsageError(err.Error())
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.addr)
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // it only listened
	fmt.Fprintf(stdout, "%s%v\n", listening, l.Addr())
	return (&server{host: host}).serve(ctx, l, o.once)
}

// alone runs the server in a child.
func alone(ctx context.Context, o *options, stdout, stderr io.Writer) error {
	var args []string
	if o.profile != "" {
		args = []string{"-cpuprofile", o.profile + ".server"}
	}
	k, err := startChild(ctx, stderr, args...)
	if err != nil {
		return err
	}
	profile := o.profile
	if profile != "" {
		profile += ".client"
	}
	err = profiled(profile, func() error { return o.measure(ctx, k.c, stdout, stderr) })
	return errors.Join(err, k.stop())
}

// measure measures what the options say with the server behind c.
func (o *options) measure(ctx context.Context, c net.Conn, stdout, stderr io.Writer) error {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // that ends what goes on
	defer stop()
	r := &remote{c: c}
	if o.suite != "" {
		rows, met := o.runSuite(r, o.selected(), stderr)
		err := o.print(stdout, rows)
		if err == nil && !met {
			err = ErrMissed
		}
		return err
	}
	var rows []row
	for _, w := range o.workloads() {
		more, err := o.compare(r, w)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	return o.print(stdout, rows)
}

// compare measures one workload against the baseline.
func (o *options) compare(r *remote, w workload) ([]row, error) {
	var base *workload
	if o.baseline != "none" {
		b := w
		b.Kind = o.baseline
		base = &b
	}
	pairs, err := o.pairing.compare(r, w, base)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", w.Op, sizeName(w.Size), err)
	}
	metrics := []metric{throughput, rate, cpu, allocs}
	if w.filled().Latency {
		metrics = []metric{p50, p99, p999, cpu, allocs}
	}
	var rows []row
	for _, m := range metrics {
		rows = append(rows, summarize(w.Op+"_"+sizeName(w.Size), m, o.baseline, pairs))
	}
	return rows, nil
}
