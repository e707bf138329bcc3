package wiretest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// A Bender changes messages in one direction, as the input of a fuzz target says.
type Bender struct {
	changes []change
	passed  int    // messages since the last change
	first   []byte // of all
	last    []byte // as it was sent
	held    []byte // a message that the next one overtakes
	bent    bool
	lost    bool
}

// A change is what happens to one message.
type change struct {
	after int // messages that pass before it
	how   uint8
	at    int
	arg   byte
}

// changeLen is how many octets of an input form a change: direction and messages that pass, how, where (2), argument.
const changeLen = 5

// Change returns the part of an input that changes a message, on the way back or there, after so many other messages.
func Change(back bool, after int, how Bend, at uint16, arg byte) []byte {
	b := []byte{byte(after & 0x7f), byte(how), 0, 0, arg}
	if back {
		b[0] |= 0x80
	}
	binary.BigEndian.PutUint16(b[2:], at)
	return b
}

// A Bend is a way to change a message.
type Bend uint8

// The ways to change a message. Larger values repeat these, from the first on.
const (
	Flip      Bend = iota // flip the bits of an octet that are set in the argument; 0: the highest
	Drop                  // drop the message
	Duplicate             // duplicate the message
	Splice                // join its beginning and the end of the message before
	Insert                // insert some octets
	Truncate              // truncate the message
	Overtake              // deliver the next message first
	Replay                // deliver the first message again, after this one
	Edge                  // set two, four or eight octets to all zeros or all ones
	bends
)

// Benders returns the Benders of both directions.
func Benders(script []byte) (there, back *Bender) {
	there, back = new(Bender), new(Bender)
	for ; len(script) >= changeLen; script = script[changeLen:] {
		b := there
		if script[0]&0x80 != 0 {
			b = back
		}
		b.changes = append(b.changes, change{int(script[0] & 0x7f), script[1] % uint8(bends), int(binary.BigEndian.Uint16(script[2:])), script[4]})
	}
	return there, back
}

// Bent reports whether anything was changed.
func (b *Bender) Bent() bool { return b.bent }

// Saw records a message that has passed before.
func (b *Bender) Saw(msg []byte) { b.first, b.last = bytes.Clone(msg), bytes.Clone(msg) }

// Lost reports whether a whole message was lost or moved.
func (b *Bender) Lost() bool { return b.lost }

// Bend returns the messages that replace msg: none, one or more. They do not share msg's memory.
func (b *Bender) Bend(msg []byte) (out [][]byte) {
	sent := bytes.Clone(msg)
	out = [][]byte{bytes.Clone(msg)}
	if len(b.changes) > 0 && b.passed >= b.changes[0].after {
		c := b.changes[0]
		b.changes, b.passed = b.changes[1:], 0
		out = b.change(c, out[0])
	} else {
		b.passed++
	}
	came := bytes.Join(out, nil)
	b.lost = b.lost || len(came) == 0 || bytes.Equal(came, b.last) && !bytes.Equal(came, sent)
	if b.first == nil {
		b.first = sent
	}
	b.last = sent
	if b.held != nil && len(out) > 0 {
		out, b.held = append(out, b.held), nil
	}
	b.bent = b.bent || len(out) != 1 || !bytes.Equal(out[0], sent)
	return out
}

// Rest returns the message that is still held back, because no other followed.
func (b *Bender) Rest() (out [][]byte) {
	if b.held != nil {
		out, b.held = [][]byte{b.held}, nil
	}
	return out
}

func (b *Bender) change(c change, msg []byte) [][]byte {
	at := c.at % (len(msg) + 1)
	switch Bend(c.how) {
	case Flip:
		if at < len(msg) {
			msg[at] ^= cmp.Or(c.arg, 0x80)
		}
	case Drop:
		return nil
	case Duplicate:
		return [][]byte{msg, bytes.Clone(msg)}
	case Splice:
		msg = slices.Concat(msg[:at], b.last[min(at, len(b.last)):])
	case Insert:
		msg = slices.Insert(msg, at, bytes.Repeat([]byte{c.arg}, 1+int(c.arg)%40)...)
	case Truncate:
		msg = msg[:at]
	case Overtake:
		if b.held == nil {
			b.held, b.bent = msg, true
			return nil
		}
	case Replay:
		if b.first != nil {
			return [][]byte{msg, bytes.Clone(b.first)}
		}
	default: // Edge
		n := 2 << (c.arg >> 6 % 3)
		for i := at; i < min(at+n, len(msg)); i++ {
			msg[i] = -(c.arg & 1)
		}
	}
	return [][]byte{msg}
}
