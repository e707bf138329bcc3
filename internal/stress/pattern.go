package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/goiwarp/iwarp/internal/names"
)

// A call is what a helper does.
type call uint8

const (
	callWrite call = iota
	callRead
	callSend
	callFetchAdd
	callCompareSwap
	callDrain
	callRecv
	callCommit
	calls
)

var callNames = [...]string{
	callWrite: "RDMAWrite", callRead: "RDMARead", callSend: "Send", callFetchAdd: "FetchAdd", callCompareSwap: "CompareSwap",
	callDrain: "Drain", callRecv: "Recv", callCommit: "Commit",
}

func (c call) String() string { return names.Of(c, callNames[:], "call(%d)") }

// A pattern is the mix of calls that the goroutines of one end make for a while. Which of them
// receives and which sends depends on what completes their requests (octets that come or octets
// that leave), how soon they call again, and whether the peer sends meanwhile; so each end goes
// through many patterns, and its peer through others.
type pattern struct {
	weights [calls]int    // how often each call is made
	often   int           // of a hundred calls, how many follow a rest
	pause   time.Duration // that is as long at most
	joint   bool          // and ends for all goroutines of the end at once
	soon    time.Duration // if not zero, after what time most contexts end at the latest
}

var patterns = []pattern{
	// All calls, without and with rests.
	{weights: [calls]int{3, 3, 2, 1, 1, 1, 1, 1}},
	{weights: [calls]int{3, 3, 2, 1, 1, 1, 1, 1}, often: 30, pause: time.Millisecond},
	// What only the peer's answer ends, and a reader that stays between the answers.
	{weights: [calls]int{callRead: 4, callFetchAdd: 1, callCompareSwap: 1, callRecv: 1}},
	{weights: [calls]int{callRead: 1}, often: 100, pause: 200 * time.Microsecond},
	{weights: [calls]int{callRead: 1}, often: 20, pause: 15 * time.Millisecond},
	{weights: [calls]int{callRead: 1, callCommit: 1}, often: 50, pause: 500 * time.Microsecond},
	{weights: [calls]int{callRead: 1}, often: 100, pause: 200 * time.Microsecond, joint: true},
	{weights: [calls]int{callRead: 3, callCommit: 1}, often: 90, pause: 400 * time.Microsecond, joint: true, soon: 100 * time.Microsecond},
	// The same, and most are cancelled while they get the right to receive or give it back.
	{weights: [calls]int{callRead: 1}, often: 30, pause: 500 * time.Microsecond, soon: 20 * time.Microsecond},
	{weights: [calls]int{callRead: 3, callRecv: 1, callCommit: 1}, often: 80, pause: 300 * time.Microsecond, soon: 50 * time.Microsecond},
	// What the network ends, for the peer to receive.
	{weights: [calls]int{callWrite: 3, callSend: 1}, often: 100, pause: 200 * time.Microsecond},
	{weights: [calls]int{callWrite: 3, callSend: 1}, often: 100, pause: 2 * time.Millisecond},
	{weights: [calls]int{callRecv: 1}, often: 20, pause: time.Millisecond},
}

// start is what joint rests are counted from.
var start = time.Now()

// call chooses what to do next.
func (m *pattern) call(r *rand.Rand) call {
	sum := 0
	for _, n := range m.weights {
		sum += n
	}
	k := r.IntN(sum)
	for c, n := range m.weights {
		if k -= n; k < 0 {
			return call(c)
		}
	}
	return callWrite
}

// rest lets time pass now and then.
func (m *pattern) rest(r *rand.Rand) {
	switch {
	case r.IntN(100) >= m.often:
	case m.joint:
		time.Sleep(m.pause - time.Since(start)%m.pause)
	default:
		time.Sleep(time.Duration(r.Int64N(int64(m.pause))))
	}
}

// context returns a context: most end soon. One that does not end at all is returned only if
// forever is true.
func (m *pattern) context(parent context.Context, r *rand.Rand, forever bool) (context.Context, context.CancelFunc) {
	within := func(d time.Duration) (context.Context, context.CancelFunc) {
		return context.WithTimeout(parent, time.Duration(r.Int64N(int64(d))))
	}
	if m.soon != 0 && r.IntN(3) > 0 {
		return within(m.soon)
	}
	switch r.IntN(10) {
	case 0, 1, 2, 3:
		if forever {
			return parent, func() {}
		}
	case 4: // ended before it is used
		ctx, cancel := context.WithCancel(parent)
		cancel()
		return ctx, cancel
	case 5: // cancelled by another goroutine
		ctx, cancel := context.WithCancel(parent)
		t := time.AfterFunc(time.Duration(r.Int64N(int64(300*time.Microsecond))), cancel)
		return ctx, func() { t.Stop(); cancel() }
	case 6, 7:
		return within(100 * time.Microsecond)
	case 8:
		return within(2 * time.Millisecond)
	}
	return within(50 * time.Millisecond)
}

// longestPattern bounds how long both ends keep their patterns.
const longestPattern = 300 * time.Millisecond

// changePatterns changes the patterns of both ends until the round ends.
func (p *pair) changePatterns(r *round, random *rand.Rand) {
	for !r.ending.Load() {
		for _, e := range []*end{p.client, p.server} {
			e.pattern.Store(&patterns[random.IntN(len(patterns))])
		}
		time.Sleep(time.Duration(random.Int64N(int64(longestPattern))))
	}
}
