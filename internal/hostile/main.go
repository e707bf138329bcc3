// Command hostile lets random attackers at every layer attack a listener that has honest peers, and fails if the
// attackers achieve more than they may.
//
//	go run ./internal/hostile -seed 1 -for 10m
//
// It listens with all services of the library: plain verbs with RDMA Commit over TCP and over SCTP over UDP, an
// authenticated listener (cm), operations with keys (rma) and an NVMe target. Eight honest queue pairs write, read and
// send, each at its own pace, and verify every octet. Honest visitors come and go, and an Event must report the end of
// each. A short attack first fills the caches. Then follow a quiet phase without attackers, a phase with the attackers of
// package attack, in a separate process with lower priority if the system supports that, and a phase after the attack.
//
// The program prints a table. It ends with 1 if the 99th percentile of the honest operations was more than -ratio times
// that of the quiet phase; if after the attack the heap, except kept buffers, has not returned to within a tenth; if an octet was wrong; if
// memory has changed that no attacker may change; if an Event of an honest queue pair was lost; or if an honest queue
// pair has ended. A panic also ends it. An interruption ends it with 1, too, and no result is judged. A wrong flag is 2.
//
// Layer, seed and number reproduce a conversation: see package attack.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	seed  uint64
	time  time.Duration // of the attack
	n     uint64        // conversations of it; 0: until the time is over
	parts int           // attackers at a time
	pause time.Duration // of an attacker between two conversations
	ratio float64       // that the 99th percentile may rise by; 0: by any
	child string        // where to attack, if this is the process of the attackers

	maxGap   time.Duration // of the attackers' waits; 0: as they want
	together bool          // the attackers are in this process
	quiet    time.Duration // before the attack
	warm     time.Duration // of the first attackers, at least
	settle   time.Duration // after them
	heapTime time.Duration // for the heap to come back
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "`seed` of the attackers")
	flag.DurationVar(&o.time, "for", time.Minute, "how `long` to attack")
	flag.Uint64Var(&o.n, "n", 0, "`number` of conversations after which the attack ends; 0: when -for is over")
	flag.IntVar(&o.parts, "parts", 128, "`number` of attackers at a time")
	flag.DurationVar(&o.pause, "pause", 0, "how `long` an attacker rests between two conversations")
	flag.Float64Var(&o.ratio, "ratio", 2, "`times` that the 99th percentile of honest operations may rise by; 0: it is not judged")
	flag.StringVar(&o.child, "child", "", "`addresses` to attack, in the process that the program starts")
	flag.Parse()
	if flag.NArg() > 0 || o.time <= 0 || o.parts <= 0 || o.pause < 0 || o.ratio < 0 {
		fmt.Fprintln(os.Stderr, "hostile: there are no arguments, -for and -parts must be positive, -pause and -ratio not negative")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	o.quiet, o.warm, o.settle, o.heapTime = min(max(o.time/4, time.Second), 30*time.Second), warmTime, settleTime, heapTime
	err := run(ctx, os.Stdout, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

// settleTime and heapTime are longer than any timer of set-up, of receives and of ends, also of the associations of SCTP
// whose peers have gone without a word: they would be in the first mark otherwise, and hide what is left later.
const (
	settleTime = 45 * time.Second
	heapTime   = 45 * time.Second
	warmTime   = 5 * time.Second // of the first attackers at least
)

// run attacks, or is the process of the attackers. It prints what it found.
func run(ctx context.Context, w io.Writer, o options) error {
	if o.child != "" {
		return attackFromHere(ctx, w, o)
	}
	v, err := newVictim(ctx)
	if err != nil {
		return err
	}
	defer v.close()
	return v.tested(ctx, w, o)
}

// tested attacks the victim, prints the findings, and judges them, unless ctx has ended: the honest peers end with ctx.
func (v *victim) tested(ctx context.Context, w io.Writer, o options) error {
	f, err := v.suffers(ctx, o)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	}
	f.print(w)
	return f.judge(o.ratio)
}
