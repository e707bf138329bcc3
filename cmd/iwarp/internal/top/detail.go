package top

import (
	"fmt"

	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/internal/units"
	"github.com/goiwarp/iwarp/monitor"
)

// A detail is the page of one connection. After the connection has ended it shows the last state.
type detail struct {
	row   *monitor.Row // nil: none is shown
	rates bool
	ended bool
}

// take finds the connection in two states.
func (d *detail) take(before, now *monitor.State) {
	if d.row == nil {
		return
	}
	v := monitor.Compare(before, now, monitor.Options{})
	for i := range v.Rows {
		if v.Rows[i].ID == d.row.ID {
			d.row, d.rates, d.ended = &v.Rows[i], v.Interval > 0, false
			return
		}
	}
	d.ended = true
}

// lines returns the lines of the page.
func (d *detail) lines() []line {
	r := d.row
	name := line{{strong, fmt.Sprintf("QP %d of RNIC %d", r.ID, r.RNIC)}}
	if d.ended {
		name = append(name, span{failed, " has ended: these are the last numbers"})
	}
	lines := []line{name, {label("remote"), {plain, r.Remote}}, {label("local"), {plain, r.Local}}, {label("path"), {plain, r.Path + " (" + r.Network + ")"}}}
	t, s := state(r, d.rates)
	lines = append(lines, line{label("state"), {s, t}})
	if p := r.Peer; p != nil {
		lines = append(lines, line{label("peer"), {plain, r.PeerText() + ", ID " + p.ID}})
	}
	lines = append(lines,
		line{label("queues"), {plain, fmt.Sprintf("send %s, receive %s, of a shared receive queue %s", whole(r.SendQueued), whole(r.RecvQueued), whole(r.SharedHeld))}},
		append(line{label("waits")}, counted(r.Waits, "for a receive")...))
	if r.ReadWaits > 0 {
		lines = append(lines, line{label(""), {plain, fmt.Sprintf("%s of RDMA Reads for a window, %s", whole(r.ReadWaits), brief(r.ReadWaitTime))}})
	}
	lines = append(lines, d.tcp()...)
	if r.CommitsServed > 0 {
		lines = append(lines, line{label("Commits"), {plain, fmt.Sprintf("served %s, failed %s, regions not durable %s", whole(r.CommitsServed), whole(r.CommitsFailed), whole(r.CommitsNotDurable))}})
	}
	return append(append(lines, line{}), d.kinds()...)
}

func (d *detail) tcp() []line {
	t := d.row.TCP
	if t == nil {
		return []line{{label("TCP"), {plain, "the kernel does not tell"}}}
	}
	return []line{
		append(line{label("TCP")}, counted(d.row.Retransmits, "retransmissions")...),
		{label(""), {plain, fmt.Sprintf("round trip %s +- %s, %s segments unacknowledged, window %s", brief(t.RTT), brief(t.RTTVar), whole(t.Unacked), whole(t.Window))}},
	}
}

// kinds returns a table of the kinds of message.
func (d *detail) kinds() []line {
	side := func(octets, messages, totalOctets, totalMessages string) string {
		return right(octets, 11) + right(messages, 7) + right(totalOctets, 8) + right(totalMessages, 7)
	}
	numbers := func(r monitor.Rate, t counters.Traffic) string {
		octets, messages := "-", "-"
		if d.rates {
			octets, messages = units.Octets(r.Octets)+"/s", narrow(units.Count(r.Messages))
		}
		return side(octets, messages, narrow(units.Octets(float64(t.Octets))), count(float64(t.Messages)))
	}
	const width = 14
	lines := []line{
		text(strong, left("", width)+right("received", 33)+right("sent", 33)),
		text(strong, left("", width)+side("octets", "msg/s", "octets", "msg")+side("octets", "msg/s", "octets", "msg")),
	}
	for _, k := range d.row.Kinds() {
		if k.SentTotal.Messages+k.ReceivedTotal.Messages+k.SentTotal.Octets+k.ReceivedTotal.Octets > 0 {
			lines = append(lines, text(plain, left(k.Name, width)+numbers(k.ReceivedRate, k.ReceivedTotal)+numbers(k.SentRate, k.SentTotal)))
		}
	}
	r := d.row
	return append(lines, text(strong, left("all", width)+numbers(r.ReceivedRate, r.ReceivedTotal)+numbers(r.SentRate, r.SentTotal)))
}
