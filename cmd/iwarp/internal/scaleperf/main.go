// Package scaleperf is the command "iwarp perf scale": it measures many queue pairs in one process, and what an overload does
// to a server whose memory is limited.
//
// # Idle connections
//
// For each number of --qps there are two pairs of processes, a server and a client each. One pair has that many idle queue
// pairs, the other one as many TCP connections of package net, with a goroutine in Read at both ends of each. An idle queue
// pair is made with the zero QPConfig, so it has default depths and completion queues of its own; one receive is posted. Both pairs of
// processes run at the same time and set up blocks of connections in turn. One more connection of each, the busy one, exchanges
// messages of 64 octets, before the others exist and beside them; its goroutines sleep in the kernel (iwarp.WaitBlock).
//
// The memory of a connection is the growth of the larger of the two processes, after a garbage collection, divided by the number
// of connections: once of the heap with the stacks, once of the resident memory. Neither includes the memory of sockets in the kernel.
//
// Finally the metrics of both processes are scraped by HTTP, as Prometheus does, --pairs times.
//
// # Overload
//
// A server has a limit of memory, of which the runtime may use nine tenths (as GOMEMLIMIT); with --cgroup the system ends the server
// if it uses more than the limit, including sockets. Its MaxQP follows from the limit. A client sets up --load connections, for each of
// which the server registers memory of its own, writes to those that were accepted, and leaves. Before that, and --after later,
// another client writes 1 MiB blocks with CRCs to this server and to another server without load, in turn.
package scaleperf

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/cli"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/contest"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/marks"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

type options struct {
	contest.Options

	qps    []int
	load   int
	memory int // MiB
	after  time.Duration
	silent time.Duration // how long a peer may be silent; 0: the defaults of the library and package net
	heap   string        // file for heap profiles
	kind   string        // what a node, as which the command starts itself, connects
	limit  int           // MiB that the node may use
	cgroup string        // the directory of a memory controller; of a node: of its cgroup

	chosen contest.Measurements[*bench]
}

// measurements are all measurements. --run selects them by their names.
var measurements = contest.Measurements[*bench]{
	{Name: "idle", Run: (*bench).idle},
	{Name: "overload", Run: (*bench).overload},
}

// Command is the command. Its error is marks.ErrMissed if a mark was missed.
func Command() *cobra.Command {
	o := &options{qps: []int{1000, 10000, 100000}}
	cmd := &cobra.Command{
		Use: "scale", Short: "measure many queue pairs in a process, and an overload", Args: cli.NoArgs,
		Long: `Measures many idle queue pairs in one process, and one busy one beside them, against as many TCP connections; and what an
overload does to a server whose memory is limited. It prints what was measured beside each target.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			s := cli.StreamsOf(cmd)
			if o.Serve {
				return peer.Profiled(o.Profile, func() error { return serve(cmd.Context(), o, s.In, s.Out) })
			}
			return o.measure(cmd.Context(), s)
		},
	}
	o.Flags(cmd, measurements.Names())
	fs := cmd.Flags()
	fs.IntSliceVar(&o.qps, "qps", o.qps, "`NUMBERS` of queue pairs to measure, separated by commas")
	fs.IntVar(&o.load, "load", 10000, "connections of the overload")
	fs.IntVar(&o.memory, "memory", 512, "`MiB` that the server of the overload may use")
	fs.DurationVar(&o.after, "after", time.Minute, "how long after the overload the server is measured again")
	fs.DurationVar(&o.silent, "peer-timeout", 0, "Config.PeerTimeout of the queue pairs, and the same limit for the connections of TCP; 0: the defaults of the library and of package net")
	fs.StringVar(&o.cgroup, "cgroup", "", "put the server of the overload into a new cgroup below this `DIRECTORY` of the memory controller, with --memory as its limit")
	fs.StringVar(&o.heap, "heapprofile", "", "write heap profiles of the last number to `FILE`.client and FILE.server; every allocation is recorded, which is slow")
	fs.StringVar(&o.kind, "kind", "", "with --serve: what to connect")
	fs.IntVar(&o.limit, "limit", 0, "with --serve: `MiB` that the process may have")
	cli.Hide(cmd, "kind")
	cli.Hide(cmd, "limit")
	return cmd
}

func (o *options) check() (err error) {
	if err := o.Check(); err != nil {
		return err
	}
	for _, n := range o.qps {
		if n < 1 {
			return cli.Usagef("--qps %d is not a number of connections", n)
		}
	}
	if o.load < 1 || o.memory < leastMemory || o.after < 0 {
		return cli.Usagef("--load is 1 at least, --memory %d, and --after 0", leastMemory)
	}
	if o.silent < 0 {
		return cli.Usagef("--peer-timeout %v is below 0", o.silent)
	}
	o.chosen, err = measurements.Chosen(&o.Options)
	return err
}

// A bench takes the measurements of one run of the command.
type bench struct {
	marks.Report

	opts   *options
	ctx    context.Context
	stderr io.Writer
	files  func(need uint64) uint64 // peer.RaiseFiles
	nodes  []*node
	group  cgroup // of the server of the overload
}

// measure takes the selected measurements.
func (o *options) measure(ctx context.Context, s cli.Streams) (err error) {
	b := &bench{opts: o, ctx: ctx, stderr: s.Err, files: peer.RaiseFiles}
	defer func() { err = errors.Join(err, b.stop()) }()
	if err := o.chosen.Take(b, cli.NewProgress(s.Err)); err != nil {
		return err
	}
	return b.Print(s.Out, o.JSON)
}
