package rma

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"sync"

	"github.com/goiwarp/iwarp/rma/internal/wire"
)

// A passed is a message, or a blob, that an attacker has seen.
type passed struct {
	b   []byte
	ctr uint64 // of a message
	of  blobOf // of a blob
	tag uint32
	seg segment
}

// A blobOf is the operation that a blob belongs to.
type blobOf struct {
	region, off uint64
	epoch       uint32
	dir         int
}

// A history holds the latest messages and blobs of one connection.
type history struct {
	messages [2][]passed
	blobs    []passed
	requests map[uint64]blobOf // by operation
	sinks    map[sink]blobOf   // that no message has invalidated
	latest   []sink            // keys of sinks, in order
}

// A sink is identified by its STag and by the direction of its data: both sides choose STags at random, and could
// choose the same one.
type sink struct {
	dir int
	tag uint32
}

func newHistory() *history {
	return &history{requests: make(map[uint64]blobOf), sinks: make(map[sink]blobOf)}
}

// An attacker sees everything that passes, and knows no key. The goroutines of the QPs call it when they
// send.
type attacker struct {
	*rand.Rand

	mu   sync.Mutex // of the fields below
	line *line
	now  *history // of the connection
	past *history // of the previous connection

	kind *kind // the attack to try; nil: none
	skip int   // how many opportunities to skip
	done bool
	dir  int       // direction of the attacked segment
	typ  wire.Type // 0: a blob
	held *segment  // to be sent after the next message
	// again is the sink of an old Write that was replayed, and live says that another operation had been given that
	// STag again by then: the key of an STag has eight bits.
	again sink
	live  bool
}

const remembered = 128

func (a *attacker) remember(list *[]passed, p passed) {
	if len(*list) == remembered {
		(*list)[a.IntN(remembered)] = p
		return
	}
	*list = append(*list, p)
}

// begins starts a new connection.
func (a *attacker) begins(l *line) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.past, a.now, a.held = a.now, newHistory(), nil
	if a.past == nil {
		a.past = newHistory()
	}
	a.line = l
	l.passes = a.passes
}

// tries makes the attacker try something.
func (a *attacker) tries(k *kind, skip int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kind, a.skip, a.done = k, skip, false
	a.again, a.live = sink{}, false
}

// rests stops the attacks.
func (a *attacker) rests() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kind = nil
}

// tried reports whether the attacker has attacked something, and what.
func (a *attacker) tried() (done bool, dir int, typ wire.Type) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.done, a.dir, a.typ
}

// wasLive reports whether the STag of a replayed Write belonged to an operation again.
func (a *attacker) wasLive() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.live
}

// hasTried reports whether the attacker has attacked something.
func (a *attacker) hasTried() bool {
	done, _, _ := a.tried()
	return done
}

// A lockedSource is a source of random numbers for many goroutines.
type lockedSource struct {
	mu  sync.Mutex
	pcg *rand.PCG
}

func (s *lockedSource) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pcg.Uint64()
}

func (s *lockedSource) seed(one, two uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pcg.Seed(one, two)
}

// passes is called with each segment, and attacks it or lets it pass.
func (a *attacker) passes(s segment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	msg, blob := s.message(), s.blob()
	a.sees(s, msg, blob)
	if k := a.kind; k != nil && !a.done && (!k.blob && msg != nil || k.blob && blob != nil) {
		switch {
		case a.skip > 0:
			a.skip--
		case k.do(a, s):
			a.done, a.dir, a.typ = true, s.dir, 0
			if msg != nil {
				a.typ = wire.Type(msg[1])
			}
			return
		}
	}
	a.line.send(s)
	if a.held != nil && a.held.dir == s.dir && s.isSend() {
		a.line.send(*a.held)
		a.held = nil
	}
}

// sees remembers what passes.
func (a *attacker) sees(s segment, msg, blob []byte) {
	h := a.now
	switch {
	case blob != nil:
		a.remember(&h.blobs, passed{b: bytes.Clone(blob), of: h.sinks[s.sink()], tag: s.tag(), seg: segment{s.dir, bytes.Clone(s.b)}})
	case msg != nil:
		a.remember(&h.messages[s.dir], passed{b: bytes.Clone(msg), ctr: binary.BigEndian.Uint64(msg[8:])})
		delete(h.sinks, s.sink()) // the STag that a message invalidates is at the same offset as that of a Write
		a.learns(s.dir, msg)
	}
}

// learns remembers what a message says about operations.
func (a *attacker) learns(dir int, msg []byte) {
	be, h := binary.BigEndian, a.now
	id := be.Uint64(msg[16:])
	switch wire.Type(msg[1]) {
	case wire.TypeReadReq:
		a.lends(sink{1 - dir, be.Uint32(msg[36:])}, blobOf{region: be.Uint64(msg[24:]), epoch: be.Uint32(msg[32:]), off: be.Uint64(msg[40:]), dir: 1 - dir})
	case wire.TypeWriteReq:
		h.requests[id] = blobOf{region: be.Uint64(msg[24:]), epoch: be.Uint32(msg[32:]), off: be.Uint64(msg[40:]), dir: dir}
	case wire.TypePull:
		a.lends(sink{1 - dir, be.Uint32(msg[40:])}, h.requests[id])
		delete(h.requests, id)
	default: // the others lend no memory
	}
}

// lends remembers a sink, and its operation.
func (a *attacker) lends(to sink, of blobOf) {
	h := a.now
	a.live = a.live || to == a.again
	h.sinks[to] = of
	if h.latest = append(h.latest, to); len(h.latest) > 2*runOps {
		h.latest = append(h.latest[:0], h.latest[1:]...)
	}
}

// some returns a random element of a list, or nil if the list is empty.
func some[T any](a *attacker, list []T) *T {
	if len(list) == 0 {
		return nil
	}
	return &list[a.IntN(len(list))]
}

// old returns a message that was sent in a direction: half of the time one with that number, if there is
// one.
func (a *attacker) old(h *history, dir int, ctr uint64) *passed {
	if a.IntN(2) == 0 {
		for i := range h.messages[dir] {
			if p := &h.messages[dir][i]; p.ctr == ctr {
				return p
			}
		}
	}
	return some(a, h.messages[dir])
}
