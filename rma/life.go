package rma

// A stage is how far the life of a connection has come. It never goes back.
type stage uint8

const (
	serving stage = iota
	closing       // no more operations are started
	failing       // this side has found an error, and ends the QP
	broken        // the QP is ending
	gone          // the QP has ended, and the state machines were told
)

// reach goes on to a stage. It reports false if the connection was there already. mu is held.
func (c *conn) reach(s stage) bool {
	if c.stage >= s {
		return false
	}
	c.stage = s
	return true
}

// An activity is what run does, and whether a probe is under way. A probe is a work request whose completion
// makes run look at what there is to revoke. Only this side sees that completion, and it comes behind those
// of all messages that have arrived. While run works no probe is needed: it looks at everything before it
// waits.
type activity uint8

const (
	working activity = iota
	workingProbed
	waiting
	waitingProbed
)

// An occasion changes an activity.
type occasion uint8

const (
	waits  occasion = iota // run has looked at everything, and waits for completions
	wakes                  // it does not wait any more
	probes                 // a probe is posted, if one is needed
	probed                 // its completion has come
)

// activities has the activity that follows. An occasion that changes nothing has no entry: run cannot wait
// twice, and a probe is needed only where run waits and none is under way.
var activities = map[activity]map[occasion]activity{
	working:       {waits: waiting},
	workingProbed: {waits: waitingProbed, probed: working},
	waiting:       {wakes: working, probes: waitingProbed},
	waitingProbed: {wakes: workingProbed, probed: waiting},
}

// after changes the activity, and reports whether it did.
func (a *activity) after(o occasion) bool {
	next, ok := activities[*a][o]
	if ok {
		*a = next
	}
	return ok
}

// waits reports whether run waits for completions.
func (a activity) waits() bool { return a == waiting || a == waitingProbed }
