package monitor

import (
	"slices"

	"github.com/goiwarp/iwarp/counters"
	"github.com/goiwarp/iwarp/transport"
)

// tallies count what has gone wrong on all RNICs, in the order of faults. The first occurrence of a fault on one RNIC does not
// reorder the faults of others, so that the order does not change from one View to the next.
type tallies struct {
	all    []Error
	places []int // of all, in the order of faults
}

// add adds an RNIC.
func (t *tallies) add(before, after *RNIC) {
	old := make(map[int]uint64)
	faults(before, func(place int, _ string, n uint64) { old[place] = n })
	faults(after, func(place int, name string, n uint64) {
		if n == 0 {
			return
		}
		i, there := slices.BinarySearch(t.places, place)
		if !there {
			t.places = slices.Insert(t.places, i, place)
			t.all = slices.Insert(t.all, i, Error{Name: name})
		}
		t.all[i].add(old[place], n)
	})
}

// faults yields each fault of an RNIC, and how often it has happened. Each fault has a place in the order, the same on all RNICs.
func faults(r *RNIC, yield func(place int, name string, n uint64)) {
	for i := range r.Terminates {
		t := &r.Terminates[i]
		yield(terminatePlace(t), terminateName(t), t.Count)
	}
	place := afterTerminates
	next := func(name string, n uint64) {
		yield(place, name, n)
		place++
	}
	var lost, bad, commits uint64
	for i := range r.Paths {
		p := &r.Paths[i]
		lost += p.Ended[counters.ConnectionLost]
		bad += p.Ended[counters.BadClose]
		commits += p.CommitsFailed
	}
	next("connections lost", lost)
	next("messages after the end", bad)
	for c, name := range causes {
		next("set-ups refused: "+name, r.Refused[c])
		next("set-ups failed: "+name, r.Failed[c])
	}
	next("Commits of peers that failed", commits)
	next("CQ overflows", r.CQOverflows)
	next("events dropped", r.EventsDropped)
}

// The places of Terminates: by code, sent before received, and after all of these the Terminates without a code.
const (
	unknownTerminates = 1 << 17
	afterTerminates   = unknownTerminates + 2
)

func terminatePlace(t *counters.Terminate) int {
	place := unknownTerminates
	if t.Known {
		place = int(transport.MakeCode(t.Layer, t.Type, t.Code)) << 1
	}
	if t.Remote {
		place++
	}
	return place
}

// causes are the texts for the causes why a connection was not established.
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
