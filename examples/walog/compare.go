package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"
)

// comparedRecords is enough for a median.
const comparedRecords = 1000

// compare writes records to one target of each model, alternating between the models.
func compare(ctx context.Context, o *options, out io.Writer) error {
	n := min(o.records, comparedRecords)
	pushed, err := startTarget(ctx, filepath.Join(o.dir, comparedFiles[0]), o.file, false)
	if err != nil {
		return err
	}
	defer pushed.close()
	pulled, err := startTarget(ctx, filepath.Join(o.dir, comparedFiles[1]), o.file, true)
	if err != nil {
		return err
	}
	defer pulled.close()
	w, err := openWriter(ctx, []string{pushed.l.Addr().String()}, o.file)
	if err != nil {
		return err
	}
	defer func() { _ = w.close() }()
	p, err := openPuller(ctx, pulled.l.Addr().String(), o.file)
	if err != nil {
		return err
	}
	defer func() { _ = p.close() }()

	push, pull := make([]time.Duration, n), make([]time.Duration, n)
	data := make([]byte, o.size)
	for i := range n {
		if push[i], err = timed(func() error { return w.append(ctx, data) }); err != nil {
			return err
		}
		if pull[i], err = timed(func() error { return p.append(ctx, data) }); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "a record of %d octets, one at a time, median of %d: pushed %v, pulled %v\n", o.size, n, median(push), median(pull))
	return nil
}

// startTarget opens a target in this process.
func startTarget(ctx context.Context, path string, size int64, pull bool) (*target, error) {
	t, err := openTarget(ctx, "127.0.0.1:0", path, size)
	if err != nil {
		return nil, err
	}
	t.pull = pull
	go func() { _ = t.accept(ctx) }()
	return t, nil
}

func timed(f func() error) (time.Duration, error) {
	began := time.Now()
	err := f()
	return time.Since(began), err
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2].Round(time.Microsecond)
}
