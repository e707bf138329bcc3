package counters

import (
	"math"
	"time"
)

// QP counts what a QP has sent and received, by kind of message. Received octets are counted when they are placed, sent octets
// when they are ready to be sent, and messages when all of their octets are. Octets that are ready may wait, if the peer reads nothing
// or while a responder may not send yet (RFC 5044 section 7.1.2); if the connection ends first, they are never sent.
type QP struct {
	// Path identifies how the connection performs its I/O: "raw TCP" if the library makes the system
	// calls itself; "net.Conn (*net.TCPConn)", or another type, if it calls the methods of that type
	// (see iwarp.Config.PlainIO); "TLS"; "pipe"; "sctp" or "sctp+udp".
	Path string `json:"path"`

	Sent     Ops `json:"sent"`
	Received Ops `json:"received"`
	// ReceiveWaits counts how often reading stopped because a message found no receive posted
	// (see iwarp.QPConfig.RNRWait).
	ReceiveWaits uint64 `json:"receive_waits"`

	// ReadWaits counts the RDMA Reads that have waited for the window of iwarp.QPConfig.Solicitor.
	// ReadWaitTime is how long they have waited in total, up to the longest Duration.
	ReadWaits    uint64        `json:"read_waits"`
	ReadWaitTime time.Duration `json:"read_wait_ns"`

	// CommitsServed counts the valid Commits of the peer, and CommitsFailed the ones among them with
	// a status other than 0. CommitsNotDurable counts their regions without a durable backing.
	CommitsServed     uint64 `json:"commits_served"`
	CommitsFailed     uint64 `json:"commits_failed"`
	CommitsNotDurable uint64 `json:"commits_not_durable"`

	// SharedTaken counts the receives that messages of the peer have taken from the SRQ.
	// SharedHeld is how many of these receives are occupied now, because their completion has
	// not been polled.
	SharedTaken uint64 `json:"shared_taken"`
	SharedHeld  int    `json:"shared_held"`

	// SendQueued and RecvQueued are the work requests in the queues now: work requests that are posted, and those whose
	// completion has not been polled. With an SRQ, RecvQueued counts the receives of SharedHeld.
	SendQueued int `json:"send_queued"`
	RecvQueued int `json:"recv_queued"`
}

// Add adds the counts of p, except those of now, which belong to QPs that have not ended. It does not change Path.
func (q *QP) Add(p *QP) {
	q.Sent.Add(&p.Sent)
	q.Received.Add(&p.Received)
	q.ReceiveWaits += p.ReceiveWaits
	q.ReadWaits += p.ReadWaits
	q.ReadWaitTime += min(p.ReadWaitTime, math.MaxInt64-q.ReadWaitTime)
	q.CommitsServed += p.CommitsServed
	q.CommitsFailed += p.CommitsFailed
	q.CommitsNotDurable += p.CommitsNotDurable
	q.SharedTaken += p.SharedTaken
}

// AddNow adds the counts of now.
func (q *QP) AddNow(p *QP) {
	q.SharedHeld += p.SharedHeld
	q.SendQueued += p.SendQueued
	q.RecvQueued += p.RecvQueued
}

// TCP is what the kernel reports about a TCP connection.
type TCP struct {
	RTT         time.Duration `json:"rtt_ns"`      // the round trip now, smoothed
	RTTVar      time.Duration `json:"rtt_var_ns"`  // its variation now
	Retransmits uint64        `json:"retransmits"` // segments that were sent again
	Unacked     uint64        `json:"unacked"`     // segments that are sent and not acknowledged now
	Window      uint64        `json:"window"`      // the congestion window now, in segments
}
