package solicit_test

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/solicit"
)

// Three reads of 64 KiB share a window of 128 KiB. The third is issued when the first has
// arrived.
func Example() {
	now := time.Now()
	cfg := solicit.Config{Fixed: 128 << 10}
	if err := cfg.Check(); err != nil {
		fmt.Println(err)
		return
	}
	w := solicit.New(cfg, now)
	for range 3 {
		if _, err := w.Enqueue(now, solicit.Bulk, 64<<10); err != nil {
			fmt.Println(err)
			return
		}
	}
	var running []solicit.Grant
	issue := func() {
		for g, ok := w.Next(now); ok; g, ok = w.Next(now) {
			running = append(running, g)
		}
		s := w.Stats()
		fmt.Printf("%d of %d octets granted, %d waiting\n", s.Granted, s.Limit, s.Queued)
	}
	issue()
	now = now.Add(time.Millisecond)
	w.Release(now, running[0].ID, solicit.OK)
	issue()
	// Output:
	// 131072 of 131072 octets granted, 1 waiting
	// 131072 of 131072 octets granted, 0 waiting
}

// A flow begins with one operation and doubles their number in each delay of the path.
func ExamplePacer() {
	var p solicit.Pacer
	now := time.Now()
	inFlight := 0
	issue := func() {
		for {
			ok, _ := p.MayIssue(now, inFlight)
			if !ok {
				break
			}
			inFlight++
		}
		fmt.Println(inFlight, "in flight")
	}
	issue()
	now = now.Add(time.Millisecond)
	inFlight--
	p.Done(now, 0, time.Millisecond, solicit.OK)
	issue()
	// Output:
	// 1 in flight
	// 2 in flight
}
