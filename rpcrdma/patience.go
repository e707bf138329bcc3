package rpcrdma

import "time"

const (
	// patience is how long the RDMA Reads of a call, or a reply, may wait for the client.
	patience = time.Minute
	// shortPatience is how long they may wait without progress while another connection waits for their memory.
	shortPatience = 10 * time.Second
)

// A progress records how many octets have moved, and when that was found: at most shortPatience after the last octet has moved.
type progress struct {
	octets uint64
	at     time.Time
}

func (p *progress) look(octets uint64) {
	if octets != p.octets {
		p.octets, p.at = octets, time.Now()
	}
}

// shorten shortens a deadline, if there is one, because another connection waits for the memory.
func (p *progress) shorten(deadline time.Time) time.Time {
	if deadline.IsZero() {
		return deadline
	}
	since := deadline.Add(-patience)
	if p.at.After(since) {
		since = p.at
	}
	return earlier(deadline, since.Add(shortPatience))
}

// earlier returns the earlier of two times; zero stands for no time.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
