package monitor

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/internal/units"
)

// web holds the page, which draws the contents of /page.json.
//
//go:embed web
var web embed.FS

// pageRows is how many connections the page shows at most.
const pageRows = 200

// A page is what is drawn: finished texts, so that the script in the browser does not compute any numbers.
type page struct {
	Process   string      `json:"process"` // another value means another process
	Title     string      `json:"title"`
	About     string      `json:"about"`
	Tiles     []tile      `json:"tiles"`
	Point     *point      `json:"point"` // of the plot; null: no rates yet
	Errors    []fault     `json:"errors"`
	Latencies [][6]string `json:"latencies"`
	Columns   []heading   `json:"columns"`
	Rows      [][]string  `json:"rows"`
	Summary   string      `json:"summary"`
}

// A tile is a number in large type on the page.
type tile struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	More  string `json:"more"`
}

// A point is the rates of one moment, in octets.
type point struct {
	At           float64 `json:"at"` // the uptime in seconds
	Received     float64 `json:"received"`
	Sent         float64 `json:"sent"`
	ReceivedText string  `json:"received_text"`
	SentText     string  `json:"sent_text"`
}

// A fault is an Error.
type fault struct {
	Name  string `json:"name"`
	Total string `json:"total"`
	New   string `json:"new"` // empty: none
}

// A heading is the heading of a column of the table.
type heading struct {
	Column Column `json:"column"`
	Title  string `json:"title"`
	Help   string `json:"help"`
	Text   bool   `json:"text"`   // not a number
	Sorted string `json:"sorted"` // the value of aria-sort; empty: not sorted by this column
}

// types are the media types of the files. The system's types for their names may differ.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// serveFile serves a file of the page.
func serveFile(w http.ResponseWriter, r *http.Request) {
	name := cmp.Or(r.PathValue("file"), "index.html")
	b, err := web.ReadFile("web/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	_, _ = w.Write(b) // the client has gone
}

// servePage serves what the page draws.
func (h *Handler) servePage(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	o := Options{Sort: Column(q.Get("sort")), Reverse: q.Has("reverse"), Filter: q.Get("filter"), Limit: pageRows}
	if !o.Sort.Known() {
		o.Sort = ByRate
	}
	states := h.pageStates()
	b, err := json.Marshal(pageOf(Compare(states.before, states.after, o), &o))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b) // the client has gone
}

func pageOf(v *View, o *Options) *page {
	p := &page{
		Process: fmt.Sprint(v.Process), Title: v.Process.Program, About: about(v), Tiles: tiles(v), Errors: []fault{}, Latencies: [][6]string{},
		Rows: [][]string{}, Summary: summary(v, o),
	}
	if v.Interval > 0 {
		p.Point = &point{v.Uptime.Seconds(), v.Received.Octets, v.Sent.Octets, perSecond(v, v.Received.Octets), perSecond(v, v.Sent.Octets)}
	}
	for _, e := range v.Errors {
		f := fault{Name: e.Name, Total: units.Whole(e.Total)}
		if e.New > 0 {
			f.New = "+" + units.Whole(e.New)
		}
		p.Errors = append(p.Errors, f)
	}
	for i := range v.Latencies {
		l := &v.Latencies[i]
		p.Latencies = append(p.Latencies, [6]string{
			l.Op, rate(v, units.Count(l.PerSec)), units.Duration(l.P50), units.Duration(l.P99), units.Duration(l.TotalP50), units.Duration(l.TotalP99),
		})
	}
	fill(p, v, o)
	return p
}

// about describes the process.
func about(v *View) string {
	parts := []string{fmt.Sprintf("iWARP, process %d", v.Process.PID)}
	if v.Process.Host != "" {
		parts[0] += " on " + v.Process.Host
	}
	parts = append(parts, "up "+units.Uptime(v.Uptime))
	if v.Process.Version != "" && v.Process.Version != "(devel)" {
		parts = append(parts, v.Process.Version)
	}
	return strings.Join(append(parts, plural(v.RNICs, "RNIC")), ", ")
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return units.Whole(uint64(n)) + " " + what
}

// rate returns a text about a rate, if rates are known.
func rate(v *View, text string) string {
	if v.Interval == 0 {
		return ""
	}
	return text
}

func perSecond(v *View, octets float64) string { return rate(v, units.Octets(octets)+"/s") }

func tiles(v *View) []tile {
	traffic := func(name string, r Rate, total counters.Traffic) tile {
		more := "total " + units.Octets(float64(total.Octets)) + " in " + units.Count(float64(total.Messages))
		if v.Interval > 0 {
			more = units.Count(r.Messages) + " messages/s; " + more
		}
		return tile{name, perSecond(v, r.Octets), more}
	}
	connections := tile{Name: "Connections", Value: units.Whole(uint64(v.QPs)), More: changes(v)}
	return []tile{traffic("Received", v.Received, v.ReceivedTotal), traffic("Sent", v.Sent, v.SentTotal), connections}
}

// changes describes how many connections came and went.
func changes(v *View) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{v.Came, "new"}, {v.Went, "ended"}, {v.Pending, "in set-up"}} {
		if p.n > 0 {
			parts = append(parts, units.Whole(uint64(p.n))+" "+p.what)
		}
	}
	if v.Retransmits.Total > 0 {
		parts = append(parts, units.Count(float64(v.Retransmits.Total))+" TCP segments sent again")
	}
	if v.Waits.Total > 0 {
		parts = append(parts, units.Count(float64(v.Waits.Total))+" waits for a receive")
	}
	return strings.Join(parts, ", ")
}

// summary says which connections the table shows.
func summary(v *View, o *Options) string {
	text := plural(v.QPs, "connection")
	if strings.TrimSpace(o.Filter) != "" {
		text = units.Whole(uint64(v.Matched)) + " that match, of " + text
	}
	if len(v.Rows) < v.Matched {
		text = units.Whole(uint64(len(v.Rows))) + " of " + text
	}
	if o.Sort == ByRate && !o.Reverse && v.Matched > 1 {
		text += ", the busiest first"
	}
	return text
}

// A field is a column of the table.
type field struct {
	column      Column
	title, help string
	text        bool
	of          func(v *View, r *Row) string
}

var fields = []field{
	{ByRemote, "Remote", "address of the peer", true, func(_ *View, r *Row) string { return r.Remote }},
	{ByLocal, "Local", "address of this side", true, func(_ *View, r *Row) string { return r.Local }},
	{ByPeer, "Peer", "which peer the authentication has found", true, func(_ *View, r *Row) string { return r.PeerText() }},
	{ByPath, "Path", "how the connection performs its I/O", true, func(_ *View, r *Row) string { return r.Path }},
	{ByState, "State", "state of the queue pair", true, func(_ *View, r *Row) string { return r.State }},
	{ByReceived, "Received", "octets of payload", false, func(v *View, r *Row) string { return cell(v, r.ReceivedRate.Octets, "B/s") }},
	{BySent, "Sent", "octets of payload", false, func(v *View, r *Row) string { return cell(v, r.SentRate.Octets, "B/s") }},
	{ByReceivedMessages, "Msgs in", "messages received", false, func(v *View, r *Row) string { return cell(v, r.ReceivedRate.Messages, "/s") }},
	{BySentMessages, "Msgs out", "messages sent", false, func(v *View, r *Row) string { return cell(v, r.SentRate.Messages, "/s") }},
	{BySendQueue, "Send q", "work requests in the send queue", false, func(_ *View, r *Row) string { return strconv.Itoa(r.SendQueued) }},
	{ByRecvQueue, "Recv q", "receives that are posted, or not polled yet", false, func(_ *View, r *Row) string { return strconv.Itoa(r.RecvQueued) }},
	{ByRTT, "RTT", "round trip of TCP, smoothed", false, func(_ *View, r *Row) string { return units.Duration(r.rtt()) }},
	{ByRetransmits, "Resent", "segments that TCP has sent again", false, func(_ *View, r *Row) string { return units.Count(float64(r.Retransmits.Total)) }},
	{ByWaits, "Waits", "times that reading stopped because a message found no receive posted", false, func(_ *View, r *Row) string { return units.Count(float64(r.Waits.Total)) }},
}

// cell returns a rate for the table, with its digits aligned with those of the other cells.
func cell(v *View, n float64, unit string) string {
	switch {
	case v.Interval == 0:
		return ""
	case n == 0:
		return "0"
	}
	return units.Scaled(n, unit)
}

// fill adds the table. A column that is empty in all rows is omitted, unless the table is sorted by it.
func fill(p *page, v *View, o *Options) {
	used := make([]bool, len(fields))
	cells := make([][]string, len(v.Rows))
	for i := range v.Rows {
		cells[i] = make([]string, len(fields))
		for j := range fields {
			cells[i][j] = fields[j].of(v, &v.Rows[i])
			used[j] = used[j] || cells[i][j] != ""
		}
	}
	p.Rows = make([][]string, len(cells))
	for j := range fields {
		f := &fields[j]
		optional := f.column == ByPeer || f.column == ByRTT
		if optional && !used[j] && o.Sort != f.column {
			continue
		}
		p.Columns = append(p.Columns, heading{f.column, f.title, f.help, f.text, sorted(f, o)})
		for i := range cells {
			p.Rows[i] = append(p.Rows[i], cells[i][j])
		}
	}
}

// sorted returns the order for a screen reader.
func sorted(f *field, o *Options) string {
	switch {
	case f.column != o.Sort:
		return ""
	case f.text != o.Reverse:
		return "ascending"
	}
	return "descending"
}
