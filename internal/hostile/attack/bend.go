package attack

import (
	"bytes"
	"slices"
	"time"
)

// A bender changes the messages of a conversation at random; old are the messages of another conversation.
type bender struct {
	name string
	bend func(d dice, msgs, old [][]byte) [][]byte
}

var benders = []bender{
	{"drop", func(d dice, m, _ [][]byte) [][]byte { i := d.IntN(len(m)); return slices.Delete(m, i, i+1) }},
	{"duplicate", func(d dice, m, _ [][]byte) [][]byte { i := d.IntN(len(m)); return slices.Insert(m, i, m[i]) }},
	{"reorder", func(d dice, m, _ [][]byte) [][]byte {
		i, j := d.IntN(len(m)), d.IntN(len(m))
		m[i], m[j] = m[j], m[i]
		return m
	}},
	{"flip", flip},
	{"lengthen", func(d dice, m, _ [][]byte) [][]byte {
		i := d.IntN(len(m))
		m[i] = append(bytes.Clone(m[i]), d.octets(1+d.IntN(64))...)
		return m
	}},
	{"truncate", func(d dice, m, _ [][]byte) [][]byte {
		i := d.IntN(len(m))
		m[i] = m[i][:d.IntN(len(m[i])+1)]
		return m
	}},
	{"splice", splice},
	{"replay", func(d dice, m, old [][]byte) [][]byte {
		from := m
		if len(old) > 0 && d.one(2) {
			from = old
		}
		return slices.Insert(m, d.IntN(len(m)+1), from[d.IntN(len(from))])
	}},
	{"edge", edge},
}

// Bends returns the ways in which a conversation can be bent.
func Bends() []string {
	var names []string
	for _, b := range benders {
		names = append(names, b.name)
	}
	return append(names, disturbances...)
}

// bend bends messages in up to three ways.
func bend(d dice, msgs, old [][]byte) (bent [][]byte, how []string) {
	bent = slices.Clone(msgs)
	for range 1 + d.IntN(3) {
		if len(bent) == 0 {
			break
		}
		b := pick(d, benders...)
		bent = b.bend(d, bent, old)
		how = append(how, b.name)
	}
	return bent, how
}

// flip turns up to three bits of a message.
func flip(d dice, m, _ [][]byte) [][]byte {
	i := d.IntN(len(m))
	if len(m[i]) == 0 {
		return m
	}
	m[i] = bytes.Clone(m[i])
	for range 1 + d.IntN(3) {
		m[i][d.IntN(len(m[i]))] ^= 1 << d.IntN(8)
	}
	return m
}

// splice joins the beginning of one message and the end of another one.
func splice(d dice, m, old [][]byte) [][]byte {
	from := m
	if len(old) > 0 && d.one(2) {
		from = old
	}
	i, other := d.IntN(len(m)), from[d.IntN(len(from))]
	at := d.IntN(len(m[i]) + 1)
	m[i] = slices.Concat(m[i][:at], other[min(at, len(other)):])
	return m
}

// edge replaces two, four or eight octets by a number with which programs often err.
func edge(d dice, m, _ [][]byte) [][]byte {
	i, n := d.IntN(len(m)), pick(d, 2, 4, 8)
	if len(m[i]) < n {
		return m
	}
	m[i] = bytes.Clone(m[i])
	at := d.IntN(len(m[i])/n) * n // usually the start of a field
	at = min(at+pick(d, 0, 0, 2), len(m[i])-n)
	field := m[i][at : at+n]
	fill := pick[byte](d, 0, 0, 0xff, 0xff)
	for k := range field {
		field[k] = fill
	}
	switch d.IntN(4) {
	case 0:
		field[0] ^= 0x80
	case 1:
		field[n-1] ^= 1
	}
	return m
}

// disturbances are the alterations of timing, rather than of octets.
var disturbances = []string{"stall", "slow", "fin", "rst", "half-open"}

// disturb changes when steps happen, and how a conversation ends. It returns the name of the disturbance, if any.
func disturb(d dice, steps []Step) ([]Step, string) {
	at := 0
	if len(steps) > 0 {
		at = d.IntN(len(steps))
	}
	end := []Step{{Act: Await, Wait: replyTime}, {Act: pick(d, FIN, FIN, RST)}, {Act: Await, Wait: replyTime}}
	switch d.IntN(16) {
	case 0:
		return append(slices.Insert(slices.Clone(steps), at, Step{Act: Stall, Wait: time.Duration(d.IntN(300)) * time.Millisecond}), end...), "stall"
	case 1:
		steps = slices.Clone(steps)
		for i := at; i < len(steps); i++ {
			if steps[i].Act == Send {
				steps[i].Act, steps[i].Wait = Slow, slowPause
				break
			}
		}
		return append(steps, end...), "slow"
	case 2, 3:
		return append(slices.Clone(steps[:at]), cut(d, steps[at:])...), "fin"
	case 4, 5:
		return append(slices.Clone(steps[:at]), Step{Act: RST}), "rst"
	case 6: // silent for longer than any timer
		return append(slices.Clone(steps[:at]), Step{Act: Stall, Wait: 8 * time.Second}), "half-open"
	}
	return append(slices.Clip(steps), end...), ""
}

// cut sends a part of what the next step would have sent, and a FIN.
func cut(d dice, rest []Step) []Step {
	var b []byte
	if len(rest) > 0 {
		b = rest[0].Data
	}
	out := []Step{{Act: FIN}, {Act: Await, Wait: replyTime}}
	if len(b) > 0 && rest[0].Act == Send {
		return append([]Step{{Act: Send, Data: b[:d.IntN(len(b))]}}, out...)
	}
	return out
}
