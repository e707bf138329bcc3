package top

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/monitor"
)

// A column of the table of connections.
type column struct {
	title string
	by    monitor.Column
	width int  // in characters; texts become wider if the screen has room
	rank  int  // columns of the highest rank are omitted first if the screen is narrow
	text  bool // it is left-aligned
	cell  func(r *monitor.Row, rates bool) (string, style)
}

// columns are all columns, from left to right.
var columns = []column{
	{title: "remote", by: monitor.ByRemote, width: 21, text: true, cell: textCell(func(r *monitor.Row) string { return r.Remote })},
	{title: "local", by: monitor.ByLocal, width: 21, rank: 9, text: true, cell: textCell(func(r *monitor.Row) string { return r.Local })},
	{title: "peer", by: monitor.ByPeer, width: 12, rank: 8, text: true, cell: textCell(func(r *monitor.Row) string { return r.PeerText() })},
	{title: "path", by: monitor.ByPath, width: 8, rank: 7, text: true, cell: textCell(path)},
	{title: "state", by: monitor.ByState, width: 5, rank: 1, text: true, cell: shortState},
	{title: "in/s", by: monitor.ByReceived, width: 6, cell: rateCell(octets, func(r *monitor.Row) float64 { return r.ReceivedRate.Octets })},
	{title: "out/s", by: monitor.BySent, width: 6, cell: rateCell(octets, func(r *monitor.Row) float64 { return r.SentRate.Octets })},
	{title: "in msg", by: monitor.ByReceivedMessages, width: 6, rank: 2, cell: rateCell(count, func(r *monitor.Row) float64 { return r.ReceivedRate.Messages })},
	{title: "out msg", by: monitor.BySentMessages, width: 7, rank: 2, cell: rateCell(count, func(r *monitor.Row) float64 { return r.SentRate.Messages })},
	{title: "sq", by: monitor.BySendQueue, width: 4, rank: 3, cell: depthCell(func(r *monitor.Row) int { return r.SendQueued })},
	{title: "rq", by: monitor.ByRecvQueue, width: 4, rank: 3, cell: depthCell(func(r *monitor.Row) int { return r.RecvQueued })},
	{title: "rtt", by: monitor.ByRTT, width: 6, rank: 4, cell: rtt},
	{title: "rexm", by: monitor.ByRetransmits, width: 5, rank: 5, cell: retransmits},
	{title: "waits", by: monitor.ByWaits, width: 5, rank: 6, cell: waits},
}

func textCell(of func(*monitor.Row) string) func(*monitor.Row, bool) (string, style) {
	return func(r *monitor.Row, _ bool) (string, style) { return of(r), plain }
}

func rateCell(format func(float64) string, of func(*monitor.Row) float64) func(*monitor.Row, bool) (string, style) {
	return func(r *monitor.Row, rates bool) (string, style) {
		if !rates {
			return "-", plain
		}
		return format(of(r)), plain
	}
}

func depthCell(of func(*monitor.Row) int) func(*monitor.Row, bool) (string, style) {
	return func(r *monitor.Row, _ bool) (string, style) { return depth(of(r)), plain }
}

// depth returns n in at most four characters.
func depth(n int) string {
	if n >= 10_000 {
		return strconv.Itoa(n/1000) + "k"
	}
	return strconv.Itoa(n)
}

// path returns a path without the type in brackets.
func path(r *monitor.Row) string {
	p, _, _ := strings.Cut(r.Path, " (")
	return p
}

func state(r *monitor.Row, _ bool) (string, style) {
	if r.State != "RTS" {
		return r.State, warning
	}
	return r.State, plain
}

// shortState returns a state of at most five characters.
func shortState(r *monitor.Row, rates bool) (string, style) {
	t, s := state(r, rates)
	switch t {
	case "Closing":
		t = "Close"
	case "Terminate":
		t = "Term"
	}
	return t, s
}

func rtt(r *monitor.Row, _ bool) (string, style) {
	if r.TCP == nil {
		return "-", plain
	}
	return brief(r.TCP.RTT), plain
}

func retransmits(r *monitor.Row, _ bool) (string, style) {
	if r.TCP == nil {
		return "-", plain
	}
	return growing(r.Retransmits)
}

func waits(r *monitor.Row, _ bool) (string, style) { return growing(r.Waits) }

// growing returns a count of something that should not happen.
func growing(c monitor.Count) (string, style) {
	if c.New > 0 {
		return count(float64(c.Total)), warning
	}
	return count(float64(c.Total)), plain
}

// gap is the space in front of each column except the first.
const gap = 1

// widest is how wide a column of texts may become: an IPv6 address with its port.
const widest = 47

// lengths holds the length of the longest text seen in each column. They do not shrink, so that columns stay in their places.
type lengths map[monitor.Column]int

// see updates the lengths with the texts of rows.
func (l lengths) see(rows []monitor.Row) {
	for _, c := range columns {
		if !c.text {
			continue
		}
		for i := range rows {
			t, _ := c.cell(&rows[i], true)
			l[c.by] = max(l[c.by], min(len(t), widest))
		}
	}
}

// fitting returns the columns that fit into a width, with their widths there. The column of peers is shown only if there are
// identities.
func fitting(width int, seen lengths) []column {
	shown := slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.by == monitor.ByPeer && seen[c.by] == 0 })
	for room(shown, width) < 0 {
		last := slices.MaxFunc(shown, func(a, b column) int { return cmp.Compare(a.rank, b.rank) })
		if last.rank == 0 {
			break
		}
		shown = slices.DeleteFunc(shown, func(c column) bool { return c.by == last.by })
	}
	free := room(shown, width)
	for i := range shown {
		c := &shown[i]
		if more := min(free, seen[c.by]-c.width); c.text && more > 0 {
			c.width += more
			free -= more
		}
	}
	return shown
}

// room returns how much of a width columns leave free.
func room(shown []column, width int) int {
	for _, c := range shown {
		width -= c.width + gap
	}
	return width + gap
}

// heading returns the line above the table. The name of the column by which the rows are sorted is in capitals.
func heading(shown []column, o *monitor.Options) line {
	titles := make([]string, len(shown))
	for i, c := range shown {
		title := c.title
		if c.by == o.Sort {
			title = strings.ToUpper(title)
		}
		if c.text {
			titles[i] = left(title, c.width)
		} else {
			titles[i] = right(title, c.width)
		}
	}
	return text(strong, strings.Join(titles, strings.Repeat(" ", gap)))
}

// row returns the line of a connection.
func row(shown []column, r *monitor.Row, rates bool) line {
	l := make(line, 0, len(shown))
	for i, c := range shown {
		t, s := c.cell(r, rates)
		if c.text {
			t = left(t, c.width)
		} else {
			t = right(t, c.width)
		}
		if i > 0 {
			l = append(l, span{plain, strings.Repeat(" ", gap)})
		}
		l = append(l, span{s, t})
	}
	return l
}
