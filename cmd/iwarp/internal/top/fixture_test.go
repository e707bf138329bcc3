package top

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/monitor"
)

// began is when the processes of the tests started.
var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// A scene makes the States of a process that always does the same.
type scene struct {
	pid     int
	qps     int
	trouble bool // errors, of which there are more each second
	latency bool
	peers   bool
}

// state returns the State after some seconds.
func (c *scene) state(seconds int) *monitor.State {
	up := time.Duration(seconds) * time.Second
	s := &monitor.State{
		Time: began.Add(up), Uptime: up,
		Process: monitor.Process{Program: "store", Version: "v1.2.3", Host: "alpha", PID: c.pid, Started: began},
	}
	r := monitor.RNIC{}
	path := counters.Path{Made: uint64(c.qps), Live: c.qps}
	path.Path = "raw TCP"
	for i := range c.qps {
		q := c.qp(i, uint64(seconds))
		path.Add(&q.QP)
		path.TCP.Retransmits += q.TCP.Retransmits
		r.QPs = append(r.QPs, q)
	}
	if c.trouble {
		c.errors(&r, &path, uint64(seconds))
	}
	if c.latency {
		path.Latency = []counters.Latency{latencyOf("RDMA Read", 5, uint64(seconds)), latencyOf("RDMA Write", 2, uint64(seconds)), latencyOf("Send with Invalidate", 9, 3)}
	}
	r.Paths = []counters.Path{path}
	s.RNICs = []monitor.RNIC{r}
	return s
}

// qp returns one of the QPs. The first ones have the most to do.
func (c *scene) qp(i int, seconds uint64) monitor.QP {
	q := monitor.QP{
		ID: uint64(i + 1), Network: "tcp", Local: "192.0.2.1:7471", Remote: fmt.Sprintf("198.51.100.%d:%d", i%250+1, 40000+i), State: "RTS",
		TCP: &counters.TCP{RTT: time.Duration(i%7+1) * 12300 * time.Nanosecond, RTTVar: 4 * time.Microsecond, Unacked: 2, Window: 10},
	}
	if i == 2 {
		q.State = "Terminate"
		q.TCP.Retransmits = 3 * seconds
	}
	if c.peers {
		q.Peer = &monitor.Peer{ID: "00ff", Group: "ops", Name: fmt.Sprintf("host-%d", i)}
	}
	q.Path = "raw TCP"
	share := seconds * 1_234_567 / uint64(i+1)
	q.Received.RDMAWrite = counters.Traffic{Messages: share / 4096, Octets: share}
	q.Received.Send = counters.Traffic{Messages: seconds, Octets: 64 * seconds}
	q.Sent.Send = counters.Traffic{Messages: 2 * seconds, Octets: 128 * seconds}
	q.SendQueued, q.RecvQueued, q.ReceiveWaits = i%3, 16*i, seconds*uint64(i%2)
	return q
}

func (c *scene) errors(r *monitor.RNIC, path *counters.Path, seconds uint64) {
	r.Terminates = []counters.Terminate{
		{Layer: 1, Type: 1, Code: 0, Known: true, Remote: true, Count: seconds},
		{Layer: 0, Type: 1, Code: 2, Known: true, Count: 12_345},
		{Count: 1},
	}
	r.Refused[counters.CauseAuthentication] = 2 * seconds
	r.Failed[counters.CauseTimeout] = 1
	r.CQOverflows = 1
	path.Ended[counters.ConnectionLost] = 4
}

func latencyOf(op string, bucket int, n uint64) counters.Latency {
	l := counters.Latency{Op: op}
	l.Counts[bucket], l.Counts[bucket+3] = 95*n, 5*n
	return l
}
