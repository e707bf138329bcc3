package stream

import "math"

// spare is how many receives of the peer are reserved for messages that are not of data, which have no
// credits.
const spare = 8

// An account bounds the messages that the peer is not known to have polled, and whose receives it may not
// have posted again. A message that finds no receive would end the stream: Linux's siw does not wait.
//
// An SGL of the peer says how many messages of data its program has read: the peer has polled these, and
// everything that was sent before the last of them. The peer has also polled an SGL of this side if it sends more
// messages of data than all earlier SGLs allow; or any octets, if it had no room before that SGL, since
// it waits for room by polling.
type account struct {
	entries  uint64 // receives of the peer
	sent     uint64 // messages of data
	polled   uint64 // of them, known to be polled
	controls uint64 // other messages that are not known to be polled
	marks    [64]mark
	first, n int // marks
}

// A mark stands for messages that are not of data.
type mark struct {
	count uint64
	after uint64 // messages of data that were sent before the last of these
	proof proof  // that the last of these was polled
}

// A proof is how much the peer can have sent before it polled an SGL: more of either proves that it has polled it.
type proof struct {
	messages uint64
	octets   uint64
}

// noOctets is the value of proof.octets if no number of octets proves anything.
const noOctets = math.MaxUint64

func (a *account) unknown() uint64 { return a.sent - a.polled + a.controls }

// mayData reports whether a message of data may be sent. At least half of the receives are for data,
// since the peer may not answer before it has that many messages.
func (a *account) mayData() bool {
	return a.sent == a.polled || a.sent-a.polled+max(a.controls, min(spare, a.entries/2)) < a.entries
}

// mayControl reports whether an SGL may be sent. Receives remain for two SGLs for which the peer waits,
// and for SHUTDOWN and DISCONNECT.
func (a *account) mayControl() bool {
	return a.controls+4 < a.entries/2 && a.unknown()+4 < a.entries
}

// control counts a message that is not of data.
func (a *account) control(p proof) {
	a.controls++
	if a.n < len(a.marks) {
		a.marks[(a.first+a.n)%len(a.marks)] = mark{count: 1, after: a.sent, proof: p}
		a.n++
		return
	}
	// The last mark comes to stand for this message, too: that weakens what can be proved of the others.
	last := &a.marks[(a.first+a.n-1)%len(a.marks)]
	last.count++
	last.after, last.proof = a.sent, p
}

// acknowledged records that the peer has polled so many messages of data.
func (a *account) acknowledged(polled uint64) {
	a.polled = max(a.polled, polled)
	for a.n > 0 && a.marks[a.first].after < a.polled {
		a.pop()
	}
}

// heard records how much data the peer has sent.
func (a *account) heard(messages, octets uint64) {
	proved := 0
	for i := range a.n {
		if p := a.marks[(a.first+i)%len(a.marks)].proof; messages > p.messages || octets > p.octets {
			proved = i + 1
		}
	}
	for range proved {
		a.polled = max(a.polled, a.marks[a.first].after)
		a.pop()
	}
}

func (a *account) pop() {
	a.controls -= a.marks[a.first].count
	a.first = (a.first + 1) % len(a.marks)
	a.n--
}
