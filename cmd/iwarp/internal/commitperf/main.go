// Package commitperf measures RDMA Commit: octets that are pushed to the peer's disk by
// an RDMA Write and a Commit, against octets that the peer pulls (a message, an RDMA
// Read, a sync, an answer) and against a local sync. The peers are processes of their own,
// one for each model.
package commitperf

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

// The goals.
const (
	mostOverLocal = 1.10 // of the latency of a push over that of a local sync and an empty RDMA Read
	leastGroup    = 7.0  // times the serial rate, at a concurrency of groupAt
	groupAt       = 64
	mostOfPull    = 0.6 // of the latency of a push over that of a pull, without a medium
)

var concurrencies = []int{1, 16, 64, 256}

// slot is how many octets one operation writes.
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
	json   bool
	cc     string
	serve  bool // be the target
	medium string
	slots  int
	pulls  bool
}

// Command is the command "iwarp perf commit". Its error is marks.ErrMissed if a goal was missed.
func Command() *cobra.Command {
	o := new(options)
	cmd := &cobra.Command{
		Use: "commit", Short: "measure RDMA Commit against what it replaces", Args: cli.NoArgs,
		Long: `Measures octets that are pushed to the peer's disk by an RDMA Write and a Commit, against octets that the peer pulls (a
message, an RDMA Read, a sync, an answer), and against a local sync. The peers are processes of their own.`,
		Example: "  iwarp perf commit --dir /var/tmp",
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.measure(cmd) },
	}
	fs := cmd.Flags()
	fs.StringVar(&o.dir, "dir", "", "`DIRECTORY` for the file; empty: that for temporary files, which may be in memory")
	fs.DurationVar(&o.span, "span", 2*time.Second, "about how long each row takes")
	fs.StringVar(&o.cc, "cc", peer.DefaultCC, "congestion control of all connections, empty: the system's")
	fs.BoolVar(&o.goal, "goal", true, "exit with 1 if a goal is missed")
	fs.BoolVar(&o.json, "json", false, "print one JSON object a line")
	fs.BoolVar(&o.serve, "serve", false, "be a target, as which the command starts itself, until stdin ends")
	fs.StringVar(&o.medium, "medium", fileMedium, "target: file, or none, which is memory that nothing makes durable")
	fs.IntVar(&o.slots, "slots", 1, "target: how many connections")
	fs.BoolVar(&o.pulls, "pulls", false, "target: pull from them, instead of being pushed to")
	cli.Hide(cmd, "serve", "medium", "slots", "pulls")
	return cmd
}

func (o *options) measure(cmd *cobra.Command) (err error) {
	s := cli.StreamsOf(cmd)
	if o.serve {
		return runTarget(cmd.Context(), o, s.Out)
	}
	if o.span < time.Millisecond {
		return cli.Usagef("--span is 1ms at least")
	}
	if o.dir, err = os.MkdirTemp(o.dir, "iwarp-commit"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(o.dir) }()
	r := &report{out: s.Out, errs: s.Err, progress: cli.NewProgress(s.Err), json: o.json}
	if err := r.run(cmd.Context(), *o); err != nil {
		return err
	}
	if r.missed && o.goal {
		return marks.ErrMissed
	}
	return nil
}
