package rma

import (
	"bytes"
	"encoding/binary"
)

// A kind is a kind of attack. do sends something else instead of a segment; it reports false if the attack
// is not possible there, and nothing was sent.
type kind struct {
	name   string
	blob   bool // on a blob, not on a message
	behind bool // the attacked segment arrives first, unchanged
	spares bool // the connection survives, and all operations except one
	below  bool // DDP or RDMAP may notice it
	do     func(a *attacker, s segment) bool
}

// replace sends other octets instead of the octets of a segment.
func (a *attacker) replace(s segment, payload, by []byte) bool {
	if by == nil || bytes.Equal(payload, by) {
		return false
	}
	a.line.send(s.with(by))
	return true
}

func (a *attacker) flipped(b []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + a.IntN(3) {
		b[a.IntN(len(b))] ^= 1 << a.IntN(8)
	}
	return b
}

func (a *attacker) junk(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(a.Uint32())
	}
	return b
}

// spliced replaces some octets by octets of another message or blob.
func (a *attacker) spliced(b, other []byte) []byte {
	at := a.IntN(len(b))
	b = bytes.Clone(b)
	copy(b[at:], other[min(at, len(other)):])
	return b
}

// messageKinds are the attacks on messages.
var messageKinds = []kind{
	{name: "bits of a message", do: func(a *attacker, s segment) bool {
		return a.replace(s, s.message(), a.flipped(s.message()))
	}},
	{name: "a message cut", do: func(a *attacker, s segment) bool {
		return a.replace(s, s.message(), s.message()[:a.IntN(len(s.message()))])
	}},
	{name: "a message longer", below: true, do: func(a *attacker, s segment) bool {
		return a.replace(s, s.message(), append(bytes.Clone(s.message()), a.junk(1+a.IntN(120))...))
	}},
	{name: "a message spliced", do: func(a *attacker, s segment) bool {
		return a.replace(s, s.message(), a.spliced(s.message(), some(a, a.now.messages[s.dir]).b))
	}},
	{name: "a body of an old message", do: func(a *attacker, s segment) bool {
		old := a.old(a.now, s.dir, 0).b
		return a.replace(s, s.message(), append(bytes.Clone(s.message()[:24]), old[24:]...))
	}},
	{name: "an old message", do: func(a *attacker, s segment) bool {
		return a.replace(s, s.message(), some(a, a.now.messages[s.dir]).b)
	}},
	{name: "an old message behind", behind: true, below: true, do: func(a *attacker, s segment) bool {
		a.line.send(s)
		again := s.with(some(a, a.now.messages[s.dir]).b)
		if a.IntN(4) > 0 { // without the invalidation of an STag, which would be invalid already
			again.b[1] = again.b[1]&0xf0 | opcodeSend
			binary.BigEndian.PutUint32(again.b[2:], 0)
		}
		a.line.send(again)
		return true
	}},
	{name: "a message of another connection", do: func(a *attacker, s segment) bool {
		p := a.old(a.past, s.dir, binary.BigEndian.Uint64(s.message()[8:]))
		return p != nil && a.replace(s, s.message(), p.b)
	}},
	{name: "a message to its sender", do: func(a *attacker, s segment) bool {
		p := a.old(a.now, 1-s.dir, binary.BigEndian.Uint64(s.message()[8:]))
		return p != nil && a.replace(s, s.message(), p.b)
	}},
	{name: "a message dropped", do: func(*attacker, segment) bool { return true }},
	{name: "two messages in another order", do: func(a *attacker, s segment) bool {
		a.held = &s
		return true
	}},
	{name: "another STag invalidated", below: true, do: func(a *attacker, s segment) bool {
		tag, opcode, none := uint32(0), byte(opcodeSend), s.b[1]&0xf == opcodeSend
		if none && a.IntN(4) > 0 {
			return false
		}
		if none || a.IntN(2) == 0 {
			tag, opcode = a.anySink(), opcodeSendInvalidate
		}
		if tag == binary.BigEndian.Uint32(s.b[2:]) && opcode == s.b[1]&0xf {
			return false
		}
		s.b[1] = s.b[1]&0xf0 | opcode
		binary.BigEndian.PutUint32(s.b[2:], tag)
		a.line.send(s)
		return true
	}},
}

// anySink returns the STag of some sink, which may be dead.
func (a *attacker) anySink() uint32 {
	if p := some(a, a.now.blobs); p != nil && a.IntN(4) > 0 {
		return p.tag
	}
	return a.Uint32()
}

// blobKinds are the attacks on blobs.
var blobKinds = []kind{
	{name: "bits of a blob", blob: true, spares: true, do: func(a *attacker, s segment) bool {
		return a.replace(s, s.blob(), a.flipped(s.blob()))
	}},
	{name: "a blob cut", blob: true, spares: true, do: func(a *attacker, s segment) bool {
		// The previous contents of the sink may end in the same octets, but in only a few.
		return a.replace(s, s.blob(), s.blob()[:a.IntN(len(s.blob())-7)])
	}},
	{name: "a blob longer", blob: true, below: true, do: func(a *attacker, s segment) bool {
		return a.replace(s, s.blob(), append(bytes.Clone(s.blob()), a.junk(1+a.IntN(100))...))
	}},
	{name: "a blob dropped", blob: true, spares: true, do: func(*attacker, segment) bool { return true }},
	{name: "a blob spliced", blob: true, spares: true, do: func(a *attacker, s segment) bool {
		return a.replace(s, s.blob(), a.spliced(s.blob(), some(a, a.now.blobs).b))
	}},
	{name: "a blob behind its message", blob: true, below: true, do: func(a *attacker, s segment) bool {
		a.held = &s
		return true
	}},
	{name: "a blob to another sink", blob: true, below: true, do: func(a *attacker, s segment) bool {
		tag := a.otherSink(s)
		if tag == 0 {
			return false
		}
		binary.BigEndian.PutUint32(s.b[2:], tag)
		a.line.send(s)
		return true
	}},
	{name: "a blob at another place", blob: true, below: true, do: func(a *attacker, s segment) bool {
		binary.BigEndian.PutUint64(s.b[6:], binary.BigEndian.Uint64(s.b[6:])+1<<a.IntN(64))
		a.line.send(s)
		return true
	}},
	{name: "a blob written over", blob: true, spares: true, do: func(a *attacker, s segment) bool {
		first := bytes.Clone(s.b)
		a.line.send(segment{s.dir, first})
		return a.replace(s, s.blob(), a.flipped(s.blob()))
	}},
	{name: "an old Write again", blob: true, behind: true, below: true, do: func(a *attacker, s segment) bool {
		p := some(a, a.now.blobs)
		if _, live := a.now.sinks[p.seg.sink()]; live || p.seg.dir != s.dir {
			return false
		}
		a.line.send(s)
		a.line.send(segment{p.seg.dir, bytes.Clone(p.seg.b)})
		a.again = p.seg.sink()
		return true
	}},
	otherBlob("operation", func(a *attacker, of, p blobOf) bool { return true }),
	otherBlob("offset", func(_ *attacker, of, p blobOf) bool {
		return p.off != of.off && p.region == of.region && p.dir == of.dir && p.epoch == of.epoch
	}),
	otherBlob("region", func(_ *attacker, of, p blobOf) bool { return p.region != of.region && p.dir == of.dir }),
	otherBlob("direction", func(_ *attacker, of, p blobOf) bool { return p.dir != of.dir && p.region == of.region }),
	otherBlob("epoch", func(_ *attacker, of, p blobOf) bool {
		return p.epoch != of.epoch && p.region == of.region && p.dir == of.dir
	}),
	{name: "a blob of another connection", blob: true, spares: true, do: func(a *attacker, s segment) bool {
		return a.substitute(s, a.past.blobs, func(_ *attacker, of, p blobOf) bool { return p.dir == of.dir })
	}},
}

// otherBlob is the attack that replaces a blob by the blob of another operation.
func otherBlob(what string, fits func(a *attacker, of, p blobOf) bool) kind {
	return kind{name: "a blob of another " + what, blob: true, spares: true, do: func(a *attacker, s segment) bool {
		return a.substitute(s, a.now.blobs, fits)
	}}
}

// substitute sends another blob of the same length.
func (a *attacker) substitute(s segment, blobs []passed, fits func(a *attacker, of, p blobOf) bool) bool {
	of := a.now.sinks[s.sink()]
	first := a.IntN(len(blobs) + 1)
	for i := range blobs {
		p := &blobs[(first+i)%len(blobs)]
		if len(p.b) == len(s.blob()) && fits(a, of, p.of) && a.replace(s, s.blob(), p.b) {
			return true
		}
	}
	return false
}

// otherSink returns the STag of another operation, preferably a live one.
func (a *attacker) otherSink(s segment) uint32 {
	for _, other := range a.now.latest {
		if _, live := a.now.sinks[other]; live && other != s.sink() && other.dir == s.dir {
			return other.tag
		}
	}
	if p := some(a, a.now.blobs); p.tag != s.tag() {
		return p.tag
	}
	return 0
}
