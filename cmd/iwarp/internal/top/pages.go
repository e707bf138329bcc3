package top

import "github.com/goiwarp/iwarp/monitor"

// everything returns all errors and latencies.
func everything(v *monitor.View) []line {
	var lines []line
	lines = append(lines, text(strong, "errors since the RNICs were opened"))
	if len(v.Errors) == 0 {
		lines = append(lines, text(plain, "none"))
	}
	for i := range v.Errors {
		lines = append(lines, counted(v.Errors[i].Count, v.Errors[i].Name))
	}
	lines = append(lines, line{}, text(strong, left("latency", 30)+right("ops/s", 8)+right("p50", 8)+right("p99", 8)+right("of all", 9)+right("p50", 8)+right("p99", 8)))
	if len(v.Latencies) == 0 {
		lines = append(lines, text(plain, unmeasured))
	}
	for i := range v.Latencies {
		l := &v.Latencies[i]
		lines = append(lines, text(plain, left(l.Op, 30)+right(count(l.PerSec), 8)+right(brief(l.P50), 8)+right(brief(l.P99), 8)+
			right(count(float64(l.Total)), 9)+right(brief(l.TotalP50), 8)+right(brief(l.TotalP99), 8)))
	}
	return lines
}

// helpText is the page of the keys.
var helpText = []string{
	"q, Ctrl-C            quit",
	"up, down, k, j       one line; PgUp, PgDn: one page; g, G: first and last",
	"enter                one connection, by kind of message; esc: back",
	"e                    all errors and latencies",
	"s, S or >, <         order by the next column, or the one before",
	"r                    reverse the order",
	"/                    filter: connections that have all of some words in their",
	"                     addresses, peer, path or state; enter: keep, esc: drop",
	"p                    pause: nothing is read until p goes on",
	"?                    this page",
	"",
	"in/s, out/s          octets received and sent in a second, of payload",
	"in msg, out msg      messages received and sent in a second",
	"sq, rq               work requests in the send and receive queues",
	"rtt                  round trip of TCP, smoothed by the kernel",
	"rexm                 segments of TCP sent again, since the beginning",
	"waits                times that a message found no receive, since the beginning",
	"12     +3            12 since the beginning, of which 3 since the last look",
}

func help() (lines []line) {
	for _, t := range helpText {
		lines = append(lines, text(plain, t))
	}
	return lines
}
