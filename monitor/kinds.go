package monitor

import "github.com/goiwarp/iwarp/counters"

// A Kind counts what a QP has sent and received of one kind of message.
type Kind struct {
	Name                     string // as counters.Ops.All yields it
	SentRate, ReceivedRate   Rate
	SentTotal, ReceivedTotal counters.Traffic
}

// Kinds returns each kind of message of a QP, with rates since the State before.
func (r *Row) Kinds() []Kind {
	sent, received := listed(&r.Sent), listed(&r.Received)
	sentBefore, receivedBefore := listed(&r.was.Sent), listed(&r.was.Received)
	c := comparison{seconds: r.seconds}
	var all []Kind
	for name := range r.Sent.All {
		i := len(all)
		all = append(all, Kind{
			Name: name, SentTotal: sent[i], ReceivedTotal: received[i],
			SentRate: c.rate(sentBefore[i], sent[i]), ReceivedRate: c.rate(receivedBefore[i], received[i]),
		})
	}
	return all
}

// listed returns the counts of all kinds, in their order.
func listed(o *counters.Ops) (all []counters.Traffic) {
	for _, t := range o.All {
		all = append(all, *t)
	}
	return all
}
