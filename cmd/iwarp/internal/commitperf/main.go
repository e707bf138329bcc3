// Package commitperf measures RDMA Commit: octets that are pushed to the peer's disk by
// an RDMA Write and a Commit, against octets that the peer pulls (a message, an RDMA
// Read, a sync, an answer) and against a local sync. The peers are processes of their own,
// one for either model.
package commitperf

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// ErrMissed is what Main returns when a goal was missed.
var ErrMissed = errors.New("not all goals are met")

// The goals.
const (
	mostOverLocal = 1.10 // of the latency of a push over that of a local sync and an empty RDMA Read
	leastGroup    = 7.0  // times the serial rate, at a concurrency of groupAt
	groupAt       = 64
	mostOfPull    = 0.6 // of the latency of a push over that of a pull, without a medium
)

var concurrencies = []int{1, 16, 64, 256}

// slot is what one operation writes.
const slot = 4096

// The media.
const (
	noMedium   = "none" // memory that nothing makes durable
	fileMedium = "file"
)

type options struct {
	dir    string
	span   time.Duration
	goal   bool
	cc     string
	serve  bool // be the target
	medium string
	slots  int
	pulls  bool
}

// Main is the command "iwarp perf commit".
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	fs := flag.NewFlagSet("iwarp perf commit", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.dir, "dir", "", "where to put the file; empty: the directory for temporary ones, which may be in memory")
	fs.DurationVar(&o.span, "span", 2*time.Second, "about how long each row takes")
	fs.StringVar(&o.cc, "cc", peer.DefaultCC, "congestion control of all connections, empty: the system's")
	fs.BoolVar(&o.goal, "goal", true, "exit with 1 if a goal is missed")
	fs.BoolVar(&o.serve, "s", false, "be a target, as which the command starts itself, until stdin ends")
	fs.StringVar(&o.medium, "medium", fileMedium, "target: file, or none, which is memory that nothing makes durable")
	fs.IntVar(&o.slots, "slots", 1, "target: how many connections")
	fs.BoolVar(&o.pulls, "pulls", false, "target: pull from them, instead of being pushed to")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if o.serve {
		return runTarget(ctx, &o, stdout)
	}
	var err error
	if o.dir, err = os.MkdirTemp(o.dir, "iwarp-commit"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(o.dir) }()
	r := &report{out: stdout, errs: stderr}
	if err := r.run(ctx, o); err != nil {
		return err
	}
	if r.missed && o.goal {
		return ErrMissed
	}
	return nil
}
