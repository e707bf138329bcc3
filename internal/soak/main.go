// Command soak keeps many queue pairs of two RNICs busy, damages their connections, and compares everything.
//
//	go run ./internal/soak -for 10m
//	go run -race ./internal/soak -for 1m -qps 32 -seed 7
//	go run ./internal/soak -for 5s -sabotage completion   # to see that it fails
//
// # Load
//
// Random programs of package internal/metamorphic/program run concurrently, as many as -qps queue pairs allow, each over a random network.
// They use all operations: every form of Send, RDMA Write, Write with Immediate Data, RDMA Read, the atomic operations, Immediate Data,
// Commit, Bind, fast registration, invalidations, and SRQs. Four out of five connections end with a fault:
// an abort, a Terminate, an access that must be refused, memory that is revoked while it is used, or damage
// between the two ends: a reset, the end of the stream, a corrupt octet, a stall, the end of one half, or silence. The sockets
// of SCTP over UDP lose, delay and corrupt datagrams. In addition to the programs, there is one region that one peer writes while
// another one reads it, and that its owner sends.
//
// # Findings
//
// Each program is compared with its model as the documentation of package program says: all memory, and one completion for each
// work request. No octet of a Read of the shared region may be older than the last write that was confirmed before, or newer than the last
// write that was posted.
//
// The run has rounds. When the programs of a round have ended, the two RNICs, which stay open, may use no more descriptors and
// goroutines than after the first round, and at most 16 MiB more heap. At the end, it must be possible to allocate all PDs, STags,
// CQs and SRQs of RNICs with limits. When the RNICs are closed, there may be no more descriptors and goroutines than
// before they were opened, and at most 16 MiB more heap.
//
// A finding is printed with the data that reproduce it, and the program ends with 1. A wrong flag is 2. The choices of the programs come
// from -seed; how they interleave does not.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/flagsonly"
	"github.com/goiwarp/iwarp/internal/metamorphic/program"
)

// options holds the flags.
type options struct {
	length   time.Duration
	seed     uint64
	qps      int
	networks string
	sabotage string
	verbose  bool
}

// The values of -sabotage.
const (
	loseCompletion = "completion"
	skipOctet      = "octet"
	leakSTag       = "stag"
)

func main() {
	var o options
	flag.DurationVar(&o.length, "for", time.Minute, "how `long` to run")
	flag.Uint64Var(&o.seed, "seed", 1, "`seed` of the first program; the next one has the next seed")
	flag.IntVar(&o.qps, "qps", 64, "`number` of queue pairs at a time")
	flag.StringVar(&o.networks, "networks", program.EveryNetwork, "`networks` to run over; one that the machine does not have is left out")
	flag.StringVar(&o.sabotage, "sabotage", "", "`what` to do wrong, so that the run must fail: overlook a completion, leave an octet out of a comparison, or keep an STag")
	flag.BoolVar(&o.verbose, "v", false, "print the resources in use after each round")
	flagsonly.Main("soak", o.check, func() error { return run(os.Stdout, o) })
}

func (o *options) check() error {
	if o.length <= 0 {
		return errors.New("-for must be positive")
	}
	if o.qps < minQPs || o.qps > mostQPs || o.qps%2 != 0 {
		return fmt.Errorf("-qps must be even, and from %d to %d", minQPs, mostQPs)
	}
	for n := range strings.SplitSeq(o.networks, ",") {
		if !slices.Contains(strings.Split(program.EveryNetwork, ","), n) {
			return fmt.Errorf("-networks: %q is none of %s", n, program.EveryNetwork)
		}
	}
	if o.sabotage != "" && !slices.Contains([]string{loseCompletion, skipOctet, leakSTag}, o.sabotage) {
		return fmt.Errorf("-sabotage must be %s, %s or %s", loseCompletion, skipOctet, leakSTag)
	}
	return nil
}

// run runs the load. It prints the numbers, and returns an error if there are findings.
func run(w io.Writer, o options) error {
	fmt.Fprintf(w, "seed %d, %d queue pairs over %s for %v\n", o.seed, o.qps, o.networks, o.length)
	s := newSoak(w, o)
	began := time.Now()
	s.soak()
	s.print(time.Since(began))
	if n := len(s.findings.all()); n > 0 {
		return fmt.Errorf("%d findings", n)
	}
	return nil
}
