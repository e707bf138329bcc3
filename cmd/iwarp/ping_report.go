package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/stats"
)

// mostTimes is how many round-trip times a report keeps for its percentiles. If there are more, it keeps a random sample.
const mostTimes = 1 << 16

// A pingReport prints each ping, and a summary at the end.
type pingReport struct {
	out     io.Writer
	addr    string
	size    int
	quiet   bool
	verbose bool
	json    bool

	n              int
	began          time.Time
	sum            time.Duration
	least, longest time.Duration
	times          []time.Duration
}

func (p *pinger) newReport(addr string) *pingReport {
	r := &pingReport{out: p.stdout, addr: addr, size: p.size, quiet: p.quiet, verbose: p.verbose, json: p.json, began: time.Now()}
	if !r.quiet && !r.json && !r.verbose {
		fmt.Fprintf(r.out, "iwarp ping %s: %d octets there and back by RDMA\n", r.addr, r.size)
	}
	return r
}

// ping counts and prints a ping that has come back.
func (r *pingReport) ping(seq int, rtt time.Duration, data []byte) {
	r.count(rtt)
	switch {
	case r.quiet:
	case r.json:
		r.encode(struct {
			Seq int     `json:"seq"`
			RTT float64 `json:"rtt_us"`
		}{seq, microseconds(rtt)})
	case r.verbose:
		fmt.Fprintf(r.out, "ping data: %s\n", text(data))
	default:
		fmt.Fprintf(r.out, "%d octets from %s: seq=%d time=%s\n", r.size, r.addr, seq, rttText(rtt))
	}
}

func (r *pingReport) count(rtt time.Duration) {
	if r.n == 0 || rtt < r.least {
		r.least = rtt
	}
	r.longest = max(r.longest, rtt)
	r.sum += rtt
	r.n++
	if len(r.times) < mostTimes {
		r.times = append(r.times, rtt)
	} else if i := rand.IntN(r.n); i < mostTimes {
		r.times[i] = rtt
	}
}

// summarize prints the summary of all pings.
func (r *pingReport) summarize() {
	if r.n == 0 {
		return
	}
	took, average := time.Since(r.began), r.sum/time.Duration(r.n)
	p50, p99 := stats.Quantile(r.times, 50), stats.Quantile(r.times, 99)
	if r.json {
		r.encode(map[string]any{"summary": struct {
			Addr    string  `json:"addr"`
			Octets  int     `json:"octets"`
			Pings   int     `json:"pings"`
			Seconds float64 `json:"seconds"`
			Least   float64 `json:"min_us"`
			Average float64 `json:"avg_us"`
			P50     float64 `json:"p50_us"`
			P99     float64 `json:"p99_us"`
			Longest float64 `json:"max_us"`
		}{
			r.addr, r.size, r.n, took.Seconds(), microseconds(r.least), microseconds(average),
			microseconds(p50), microseconds(p99), microseconds(r.longest),
		}})
		return
	}
	fmt.Fprintf(r.out, "--- %s: %s of %d octets in %s\n", r.addr, pingsText(r.n), r.size, rttText(took))
	fmt.Fprintf(r.out, "round trip min/avg/p50/p99/max = %s/%s/%s/%s/%s\n",
		rttText(r.least), rttText(average), rttText(p50), rttText(p99), rttText(r.longest))
}

func (r *pingReport) encode(v any) {
	_ = json.NewEncoder(r.out).Encode(v) // a lost output is noticed at the end of the process
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func pingsText(n int) string {
	if n == 1 {
		return "1 ping"
	}
	return strconv.Itoa(n) + " pings"
}

// rttText shows a time, to one tenth of its unit.
func rttText(d time.Duration) string {
	unit, name := time.Microsecond, "us"
	switch {
	case d >= 10*time.Second:
		unit, name = time.Second, "s"
	case d >= 10*time.Millisecond:
		unit, name = time.Millisecond, "ms"
	}
	return fmt.Sprintf("%.1f %s", float64(d)/float64(unit), name)
}
