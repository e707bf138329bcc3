package stream

import "math"

// spare is how many receives of the peer are kept from messages of data, for the others, which have no
// credits.
const spare = 8

// An account bounds the messages of which it is not known that the peer has polled them, and posted
// their receives again. A message that finds none would end the stream: Linux's siw does not wait.
//
// An SGL of the peer says how many messages of data its program has read: it has polled those, and
// all that was sent before the last of them. And it has polled an SGL of this side if it sends more
// messages of data than all SGLs before that one allow; or more octets, if it had room for none, since
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
	after uint64 // messages of data that were sent before the last of them
	proof proof  // that the last of them was polled
}

// A proof is what the peer can have sent without an SGL: more of either needs it.
type proof struct {
	messages uint64
	octets   uint64
}

// noOctets is the octets of a proof where no number of them proves anything.
const noOctets = math.MaxUint64

func (a *account) unknown() uint64 { return a.sent - a.polled + a.controls }

// mayData reports whether a message of data may be sent. At least half of the receives are for data,
// since the peer may answer only after so many messages.
func (a *account) mayData() bool {
	return a.sent == a.polled || a.sent-a.polled+max(a.controls, min(spare, a.entries/2)) < a.entries
}

// mayControl reports whether an SGL may be sent. Receives are left for two that the peer waits for,
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
	// The last mark becomes one of both messages, of which less can be proved.
	last := &a.marks[(a.first+a.n-1)%len(a.marks)]
	last.count++
	last.after, last.proof = a.sent, p
}

// acknowledged says that the peer has polled so many messages of data.
func (a *account) acknowledged(polled uint64) {
	a.polled = max(a.polled, polled)
	for a.n > 0 && a.marks[a.first].after < a.polled {
		a.pop()
	}
}

// heard says that the peer has sent so much data.
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
