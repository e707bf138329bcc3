package target

// EndQueue closes the connections of one queue of a host, as if the network had failed: I/O queue qid, or 0, the admin queue, which
// ends the controller. It returns how many there were, one for each controller of the host, and does not wait for their end.
func (t *Target) EndQueue(hostNQN string, qid uint16) (n int) {
	for _, q := range t.all() {
		if c := q.m.Controller(); c != nil && c.HostNQN() == hostNQN && q.m.QID() == qid {
			q.abort()
			n++
		}
	}
	return n
}
