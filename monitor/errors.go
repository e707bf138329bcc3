package monitor

import (
	"slices"

	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/transport"
)

// tallies count what has gone wrong on all RNICs, by name, in the order of faults, which does not change from one View to the next.
type tallies struct{ all []Error }

// add adds an RNIC.
func (t *tallies) add(before, after *RNIC) {
	old := make(map[string]uint64)
	faults(before, func(name string, n uint64) { old[name] = n })
	faults(after, func(name string, n uint64) {
		if n == 0 {
			return
		}
		i := slices.IndexFunc(t.all, func(e Error) bool { return e.Name == name })
		if i < 0 {
			i = len(t.all)
			t.all = append(t.all, Error{Name: name})
		}
		t.all[i].add(old[name], n)
	})
}

// faults yields what can go wrong on an RNIC, and how often it has.
func faults(r *RNIC, yield func(name string, n uint64)) {
	for i := range r.Terminates {
		yield(terminateName(&r.Terminates[i]), r.Terminates[i].Count)
	}
	var lost, bad, commits uint64
	for i := range r.Paths {
		p := &r.Paths[i]
		lost += p.Ended[counters.ConnectionLost]
		bad += p.Ended[counters.BadClose]
		commits += p.CommitsFailed
	}
	yield("connections lost", lost)
	yield("messages after the end", bad)
	for c, name := range causes {
		yield("set-ups refused: "+name, r.Refused[c])
		yield("set-ups failed: "+name, r.Failed[c])
	}
	yield("Commits of peers that failed", commits)
	yield("CQ overflows", r.CQOverflows)
	yield("events dropped", r.EventsDropped)
}

// causes are the words for why a connection was not established.
var causes = [counters.Causes]string{
	counters.CauseNotAdmitted: "not admitted", counters.CauseTimeout: "timeout", counters.CauseNoProgress: "no progress",
	counters.CauseEvicted: "evicted", counters.CauseAuthentication: "authentication", counters.CauseTLS: "TLS",
	counters.CauseMalformed: "not MPA", counters.CauseConnection: "connection lost, or never made",
	counters.CauseRejected: "rejected by the application", counters.CauseOther: "other",
}

func terminateName(t *counters.Terminate) string {
	direction := "sent"
	if t.Remote {
		direction = "received"
	}
	if !t.Known {
		return "Terminate " + direction + ": a code that no RFC has"
	}
	return "Terminate " + direction + ": " + transport.MakeCode(t.Layer, t.Type, t.Code).String()
}
