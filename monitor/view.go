package monitor

import (
	"time"

	"github.com/goiwarp/iwarp/counters"
)

// A View is the comparison of two States of one process. Its names in JSON are as stable as those of a State.
type View struct {
	Process  Process       `json:"process"`
	Time     time.Time     `json:"time"`
	Uptime   time.Duration `json:"uptime_ns"`
	Interval time.Duration `json:"interval_ns"` // between the States; 0: there is only one State, and rates are 0

	RNICs   int `json:"rnic_count"` // now
	QPs     int `json:"qp_count"`   // now
	Came    int `json:"came"`       // QPs since the State before
	Went    int `json:"went"`
	Pending int `json:"setups_pending"` // now

	// Of all RNICs: rates, and totals since they were opened.
	Sent          Rate             `json:"sent_rate"`
	Received      Rate             `json:"received_rate"`
	SentTotal     counters.Traffic `json:"sent_total"`
	ReceivedTotal counters.Traffic `json:"received_total"`
	Waits         Count            `json:"waits"`       // times that reading stopped because a message found no receive posted
	Retransmits   Count            `json:"retransmits"` // TCP segments that were sent again

	Latencies []Latency `json:"latencies"` // by the name of the operation; empty without iwarp.Config.Latency
	Errors    []Error   `json:"errors"`    // those that have happened; their order does not change from one View to the next

	Rows    []Row `json:"qps"`     // in the order of Options
	Matched int   `json:"matched"` // how many QPs match the filter; Rows may be fewer
}

// A Rate counts in one second.
type Rate struct {
	Messages float64 `json:"messages"`
	Octets   float64 `json:"octets"`
}

// A Count is how often something has happened.
type Count struct {
	Total uint64 `json:"total"` // since the RNIC was opened
	New   uint64 `json:"new"`   // since the State before
}

func (c *Count) add(before, now uint64) {
	c.Total += now
	c.New += since(before, now)
}

// An Error is something that has gone wrong.
type Error struct {
	Name  string `json:"name"`
	Count        // its fields are at the level of name
}

// A Latency is how long work requests of one operation took, from PostSend until their completion.
type Latency struct {
	Op     string        `json:"op"`
	PerSec float64       `json:"rate"`
	Total  uint64        `json:"total"`
	P50    time.Duration `json:"p50_ns"` // of work requests since the State before; 0: there were none
	P99    time.Duration `json:"p99_ns"`

	TotalP50 time.Duration `json:"total_p50_ns"` // of all work requests
	TotalP99 time.Duration `json:"total_p99_ns"`
}

// A Row is a QP with its rates.
type Row struct {
	*QP                            // its fields are at the level of rnic
	RNIC          int              `json:"rnic"` // the ID of its RNIC
	SentRate      Rate             `json:"sent_rate"`
	ReceivedRate  Rate             `json:"received_rate"`
	SentTotal     counters.Traffic `json:"sent_total"` // of all kinds of message
	ReceivedTotal counters.Traffic `json:"received_total"`
	Waits         Count            `json:"waits"` // as in the View
	Retransmits   Count            `json:"retransmits"`

	was     *QP // in the State before
	seconds float64
}

// Options select and sort the QPs of a View.
type Options struct {
	Sort    Column // ByRate if it is empty
	Reverse bool   // reverse the order, see Column
	Filter  string // QPs that have each of its words in one of their texts, in any case; empty: all
	Limit   int    // of Rows; 0: none
}

// Compare returns the View of after, with rates since before. Both States must come from one Handler. There are no rates if before is
// nil, of another process, or not older, and none for an RNIC that is only in after. The View refers to after.
func Compare(before, after *State, o Options) *View {
	v := &View{Process: after.Process, Time: after.Time, Uptime: after.Uptime, RNICs: len(after.RNICs)}
	c := &comparison{v: v, seconds: 1, before: make(map[int]*RNIC)}
	if before != nil && before.Process == after.Process && before.Uptime < after.Uptime {
		v.Interval = after.Uptime - before.Uptime
		c.seconds = v.Interval.Seconds()
		for i := range before.RNICs {
			c.before[before.RNICs[i].ID] = &before.RNICs[i]
		}
	}
	for i := range after.RNICs {
		c.rnic(&after.RNICs[i])
	}
	for _, removed := range c.before {
		v.Went += len(removed.QPs)
	}
	v.Latencies = c.latencies.quantiles(c.seconds)
	v.Errors = c.errors.all
	arrange(v, &o)
	return v
}

// A comparison is the state of Compare.
type comparison struct {
	v         *View
	seconds   float64
	before    map[int]*RNIC // by ID, RNICs of the State before that have not been compared yet
	latencies histograms
	errors    tallies
}

// rnic adds an RNIC. An RNIC that was not in the State before has no rates, but its QPs count as new.
func (c *comparison) rnic(after *RNIC) {
	before := c.before[after.ID]
	delete(c.before, after.ID)
	if before == nil {
		before = after
		if c.v.Interval > 0 {
			c.v.Came += len(after.QPs)
		}
	}
	c.v.Pending += after.Pending
	c.totals(before, after)
	c.latencies.add(before, after)
	c.errors.add(before, after)
	c.rows(before, after)
}

func (c *comparison) totals(before, after *RNIC) {
	old, now := sums(before), sums(after)
	add(&c.v.SentTotal, now.sent)
	add(&c.v.ReceivedTotal, now.received)
	addRate(&c.v.Sent, c.rate(old.sent, now.sent))
	addRate(&c.v.Received, c.rate(old.received, now.received))
	c.v.Waits.add(old.waits, now.waits)
	c.v.Retransmits.add(old.retransmits, now.retransmits)
}

// rows adds the QPs of an RNIC. All counts of a QP that is not in the State before are since that State.
func (c *comparison) rows(before, after *RNIC) {
	old := make(map[uint64]*QP, len(before.QPs))
	for i := range before.QPs {
		old[before.QPs[i].ID] = &before.QPs[i]
	}
	c.v.QPs += len(after.QPs)
	for i := range after.QPs {
		q := &after.QPs[i]
		was := old[q.ID]
		if was == nil {
			was = &QP{}
			c.v.Came++
		}
		delete(old, q.ID)
		c.v.Rows = append(c.v.Rows, c.row(was, q, after.ID))
	}
	c.v.Went += len(old)
}

func (c *comparison) row(was, q *QP, rnic int) Row {
	r := Row{QP: q, RNIC: rnic, SentTotal: total(&q.Sent), ReceivedTotal: total(&q.Received), was: was, seconds: c.seconds}
	r.SentRate = c.rate(total(&was.Sent), r.SentTotal)
	r.ReceivedRate = c.rate(total(&was.Received), r.ReceivedTotal)
	r.Waits.add(was.ReceiveWaits, q.ReceiveWaits)
	r.Retransmits.add(was.retransmits(), q.retransmits())
	return r
}

func (q *QP) retransmits() uint64 {
	if q.TCP == nil {
		return 0
	}
	return q.TCP.Retransmits
}

// since returns by how much a counter has grown. A value that is read while it counts may be slightly older than an earlier one.
func since(before, now uint64) uint64 {
	if now < before {
		return 0
	}
	return now - before
}

func (c *comparison) rate(before, now counters.Traffic) Rate {
	return Rate{
		Messages: float64(since(before.Messages, now.Messages)) / c.seconds,
		Octets:   float64(since(before.Octets, now.Octets)) / c.seconds,
	}
}

func addRate(to *Rate, r Rate) {
	to.Messages += r.Messages
	to.Octets += r.Octets
}

func add(to *counters.Traffic, t counters.Traffic) {
	to.Messages += t.Messages
	to.Octets += t.Octets
}

// total returns the sum over all kinds of message.
func total(o *counters.Ops) (sum counters.Traffic) {
	for _, t := range o.All {
		add(&sum, *t)
	}
	return sum
}

// A sum is the total over all paths of an RNIC.
type sum struct {
	sent, received     counters.Traffic
	waits, retransmits uint64
}

func sums(r *RNIC) (s sum) {
	for i := range r.Paths {
		p := &r.Paths[i]
		add(&s.sent, total(&p.Sent))
		add(&s.received, total(&p.Received))
		s.waits += p.ReceiveWaits
		s.retransmits += p.TCP.Retransmits
	}
	return s
}
