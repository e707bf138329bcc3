package top

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/internal/units"
	"github.com/goiwarp/iwarp/monitor"
)

// labelWidth is the width of the names of lines.
const labelWidth = 9

// label returns the name of a line of the header.
func label(name string) span { return span{faint, left(name, labelWidth)} }

// header returns the lines above the table, as many as suit a screen of a height.
func (m *model) header(width, height int) []line {
	v := m.view
	lines := []line{m.title(width)}
	lines = append(lines, m.traffic("in", v.Received, v.ReceivedTotal), m.traffic("out", v.Sent, v.SentTotal))
	lines = append(lines, latencies(v, width, max(height/8, 2))...)
	lines = append(lines, faults(v, max(height/6, 2))...)
	waits := append(line{label("waits")}, counted(v.Waits, "for a receive")...)
	return append(lines, append(waits, counted(v.Retransmits, "retransmissions of TCP")...))
}

// title returns the line that names the process, what it has, and whether it answers.
func (m *model) title(width int) line {
	v := m.view
	p := fmt.Sprintf("%s, pid %d", v.Process.Program, v.Process.PID)
	if v.Process.Host != "" {
		p += " on " + v.Process.Host
	}
	if m.failure != nil {
		since := ""
		if d := m.clock.Sub(m.failing); d > 0 {
			since = " for " + units.Uptime(d)
		}
		return line{{strong, p}, {failed, fmt.Sprintf(": no answer%s: %s; trying again", since, reason(m.failure))}}
	}
	has := fmt.Sprintf("%s, %s", several(v.RNICs, "RNIC"), several(v.QPs, "QP"))
	if v.Came+v.Went > 0 {
		has += fmt.Sprintf(" (+%d -%d)", v.Came, v.Went)
	}
	if v.Pending > 0 {
		has += fmt.Sprintf(", %s", several(v.Pending, "set-up"))
	}
	up := ", up " + units.Uptime(v.Uptime)
	return line{{strong, p}, {plain, up}, {plain, right(has, max(width-len(p)-len(up), len(has)+2))}}
}

// several returns a number with the noun of what is counted.
func several(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return whole(n) + " " + thing + "s"
}

// reason returns in short why there was no answer.
func reason(err error) string {
	var number syscall.Errno
	switch {
	case errors.As(err, &number):
		return number.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "it takes too long"
	}
	return err.Error()
}

// traffic returns the line of one direction.
func (m *model) traffic(name string, r monitor.Rate, total counters.Traffic) line {
	octets, messages := "-", "-"
	if m.hasRates() {
		octets, messages = units.Octets(r.Octets), units.Count(r.Messages)
	}
	return line{
		label(name),
		{strong, right(octets, 8) + "/s"},
		{plain, right(messages, 8) + " messages/s"},
		{plain, "   in all " + right(units.Octets(float64(total.Octets)), 8)},
		{plain, right(units.Count(float64(total.Messages)), 8) + " messages"},
	}
}

// latencies returns p50 and p99 of each operation, in no more lines than most.
func latencies(v *monitor.View, width, most int) []line {
	if len(v.Latencies) == 0 {
		return []line{{label("latency"), {plain, unmeasured}}}
	}
	lines := []line{{label("p50/p99")}}
	used := labelWidth
	for i := range v.Latencies {
		l := &v.Latencies[i]
		t := l.Op + " " + right(brief(l.P50), 6) + right(brief(l.P99), 7) + "   "
		if used > labelWidth && used+len(t) > width {
			if len(lines) == most-1 {
				return append(lines, line{label(""), {plain, several(len(v.Latencies)-i, "more operation") + ": e shows all"}})
			}
			lines, used = append(lines, line{label("")}), labelWidth
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], span{plain, t})
		used += len(t)
	}
	return lines
}

// unmeasured is shown instead of latencies.
const unmeasured = "not measured: a program turns it on by iwarp.Config.Latency"

// faults returns what has gone wrong, in no more lines than most.
func faults(v *monitor.View, most int) []line {
	if len(v.Errors) == 0 {
		return []line{{label("errors"), {plain, "none"}}}
	}
	shown, hidden := v.Errors, v.Errors[:0]
	if len(shown) > most {
		shown, hidden = shown[:most-1], shown[most-1:]
	}
	var lines []line
	for i := range shown {
		name := ""
		if i == 0 {
			name = "errors"
		}
		lines = append(lines, append(line{label(name)}, counted(shown[i].Count, shown[i].Name)...))
	}
	if len(hidden) == 0 {
		return lines
	}
	var all monitor.Count
	for _, e := range hidden {
		all.Total += e.Total
		all.New += e.New
	}
	return append(lines, append(line{label("")}, counted(all, "of "+several(len(hidden), "more kind")+": e shows them")...))
}

// counted returns a count of something that should not happen, and its name: in columns, so that growing numbers move nothing.
func counted(c monitor.Count, name string) []span {
	recent := span{plain, right("", 7)}
	if c.New > 0 {
		recent = span{failed, right("+"+count(float64(c.New)), 7)}
	}
	return line{{plain, right(exact(c.Total), 6)}, recent, {plain, " " + name}}
}
