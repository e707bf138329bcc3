// Command stress searches for hangs: many goroutines use the blocking helpers of a few
// queue pairs at once, most with contexts that expire soon, while other goroutines keep the
// processors busy.
//
//	go run ./internal/stress -time 10m -goroutines 16
//	go run -race ./internal/stress -time 10m -procs 1
//	go run ./internal/stress -goroutines 0 -load 35 -procs 35 -time 1m   # load for other programs only
//
// It runs rounds. In each round a client and a server, each with its own RNIC, have
// connections over the loopback interface, some with their own completion queues and some
// with shared ones. Both ends work until the round ends the connections, in one of several
// ways, while helpers still wait. A monitor measures how long each call takes: from its
// beginning until its context ends, and from then on from the end of its context. If either is
// longer than -limit, or a helper fails before the end of the round, the program prints what it
// found, the queue pairs and all goroutines, and ends with 1. A wrong flag is 2.
//
// The choices of all goroutines are random and come from -seed. How they interleave does not.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"time"

	"github.com/goiwarp/iwarp/internal/flagsonly"
)

// options holds the flags.
type options struct {
	time       time.Duration // of the whole run
	round      time.Duration // of one round at most
	limit      time.Duration // that no call may exceed
	goroutines int           // that use blocking helpers
	pairs      int           // connections
	load       int           // goroutines that only keep processors busy
	procs      int           // GOMAXPROCS; 0: as the environment has it
	seed       uint64
	network    string
}

func main() {
	var o options
	flag.DurationVar(&o.time, "time", time.Minute, "how `long` to run")
	flag.DurationVar(&o.round, "round", 5*time.Second, "how `long` the connections of one round are used at most")
	flag.DurationVar(&o.limit, "limit", 5*time.Second, "fail if a call waits `longer`")
	flag.IntVar(&o.goroutines, "goroutines", 16, "`number` of goroutines that use blocking helpers; 0: there is load only")
	flag.IntVar(&o.pairs, "pairs", 4, "`number` of connections")
	flag.IntVar(&o.load, "load", -1, "`number` of goroutines that keep processors busy; -1: as many as processors are used")
	flag.IntVar(&o.procs, "procs", 0, "GOMAXPROCS; 0: as the environment has it")
	flag.Uint64Var(&o.seed, "seed", 1, "`seed` of all random choices")
	flag.StringVar(&o.network, "network", "tcp", "`network` of the connections: tcp or pipe")
	flagsonly.Main("stress", o.check, func() error {
		if o.procs > 0 {
			runtime.GOMAXPROCS(o.procs)
		}
		if o.load < 0 {
			o.load = runtime.GOMAXPROCS(0)
		}
		err := run(os.Stdout, o)
		if f, ok := errors.AsType[*finding](err); ok {
			fmt.Fprintf(os.Stderr, "%s\n%s\n", f.pairs, f.goroutines)
		}
		return err
	})
}

func (o *options) check() error {
	switch {
	case o.time <= 0 || o.round <= 0 || o.limit <= 0:
		return errors.New("-time, -round and -limit must be positive")
	case o.goroutines < 0 || o.goroutines > 0 && o.pairs < 1:
		return errors.New("-goroutines must not be negative, and needs -pairs")
	case o.network != "tcp" && o.network != "pipe":
		return errors.New("-network must be tcp or pipe")
	}
	return nil
}

// run runs the rounds and prints the numbers to w. It returns a *finding if a call waited
// too long; goroutines of the round may then still be running.
func run(w io.Writer, o options) error {
	stop := startLoad(o.load)
	defer stop()
	if o.goroutines == 0 {
		time.Sleep(o.time)
		return nil
	}
	m := newMonitor(o.limit)
	defer m.stop()
	r := rand.New(rand.NewPCG(o.seed, 0))
	began := time.Now()
	rounds := 0
	var err error
	for ; err == nil && time.Since(began) < o.time; rounds++ {
		length := o.round/4 + time.Duration(r.Int64N(int64(o.round)))*3/4
		length = min(length, o.time-time.Since(began))
		err = runRound(m, o, r.Uint64(), length)
	}
	fmt.Fprintf(w, "GOMAXPROCS %d, %d goroutines, %d connections, load %d, seed %d: %d rounds in %v\n",
		runtime.GOMAXPROCS(0), o.goroutines, o.pairs, o.load, o.seed, rounds, time.Since(began).Round(time.Millisecond))
	fmt.Fprintln(w, m.numbers())
	return err
}
