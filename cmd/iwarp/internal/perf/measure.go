package perf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/chart"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
)

// measure measures what the options select, with the server behind c, and reports it.
func (o *options) measure(ctx context.Context, c net.Conn, s cli.Streams) error {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // Close ends the measurement
	defer stop()
	r := &remote{c: c}
	var (
		rows   []row
		points []measured
		err    error
		met    = true
	)
	if o.suite != "" {
		rows, met, err = o.runSuite(ctx, r, o.selected(), s.Err)
	} else {
		rows, points, err = o.runAll(r)
	}
	o.progress.Clear()
	if err != nil {
		return err
	}
	if err := o.print(s.Out, rows); err != nil {
		return err
	}
	if o.html != "" {
		if err := o.writeHTML(r, rows, points); err != nil {
			return err
		}
	}
	if !met {
		return marks.ErrMissed
	}
	return nil
}

// writeHTML writes the report. The report of a suite has plots of its own.
func (o *options) writeHTML(r *remote, rows []row, points []measured) (err error) {
	if o.suite != "" {
		if points, err = o.overview(r); err != nil {
			return err
		}
		o.progress.Clear()
	}
	f, err := os.Create(o.html)
	if err != nil {
		return err
	}
	return errors.Join(writeReport(f, o.facts(), rows, points), f.Close())
}

// runAll measures all workloads that the flags select, and at the end the memory of
// both processes.
func (o *options) runAll(r *remote) (rows []row, points []measured, err error) {
	all := o.workloads()
	for i, w := range all {
		o.announce(w.Op+" of "+chart.SizeName(w.Size), i, len(all))
		more, err := o.compare(r, w)
		if err != nil {
			return nil, nil, err
		}
		points = append(points, measured{w, more})
		rows = append(rows, more...)
	}
	m, err := bothMemories(r)
	if err != nil {
		return nil, nil, err
	}
	for i, end := range []string{"client", "server"} {
		peak := float64(m[i].Peak) / mib
		rows = append(rows, row{Case: end, Metric: "peak memory", Unit: "MiB", Value: &peak, Pairs: 1})
	}
	return rows, points, nil
}

// announce says what is measured, before it begins and with each pair.
func (o *options) announce(what string, i, of int) {
	o.progress.Say("measuring %s, %d of %d", what, i+1, of)
	o.pairing.begin = func(pair int) {
		o.progress.Say("measuring %s, %d of %d: pair %d of %d", what, i+1, of, pair+1, o.pairing.pairs)
	}
}

// overview measures what the report of a suite plots.
func (o *options) overview(r *remote) (points []measured, err error) {
	for _, few := range o.overviews() {
		_, more, err := few.runAll(r)
		if err != nil {
			return nil, err
		}
		points = append(points, more...)
	}
	return points, nil
}

// overviews returns options that measure few pairs of many sizes: throughput, and latency.
func (o *options) overviews() []*options {
	few := *o
	few.pairing = pairing{pairs: min(o.pairing.pairs, 3), span: min(o.pairing.span, 60*time.Millisecond)}
	few.ops, few.sizes, few.work = list{opWrite, opRead}, sweep, workload{Kind: "iwarp", Depth: 16, CRC: true, CC: o.work.CC}
	timed := few
	timed.ops, timed.sizes, timed.work.Latency = list{opRead, opPingPong}, sizes{64, 512, 4 << 10, 32 << 10}, true
	return []*options{&few, &timed}
}

// alone is the baseline that is the same workload without the slow and the idle
// connections, without authentication, and without a Solicitor.
const alone = "alone"

// base returns the baseline of a workload, nil if there is none.
func (o *options) base(w workload) *workload {
	if o.baseline == "none" {
		return nil
	}
	w.Slow, w.Idle, w.Auth, w.Window = 0, 0, "", 0
	if o.baseline != alone {
		w.Kind = o.baseline
	}
	return &w
}

// compare measures one workload against the baseline.
func (o *options) compare(r *remote, w workload) ([]row, error) {
	pairs, err := o.pairing.compare(r, w, o.base(w))
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", w.Op, chart.SizeName(w.Size), err)
	}
	metrics := []metric{throughput, rate, cpu, allocs}
	if w.filled().Latency {
		metrics = []metric{p50, p99, p999, cpu, allocs}
	}
	var rows []row
	for _, m := range metrics {
		rows = append(rows, summarize(w.Op+"_"+chart.SizeName(w.Size), m, o.baseline, pairs))
	}
	return rows, nil
}
