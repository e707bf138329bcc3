package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/hostile/attack"
	"github.com/goiwarp/iwarp/stag"
)

// Where things are: each region has guards around it.
const (
	guardLen = 4096
	partLen  = 4096
	baitTO   = 1 << 20
	canary   = 0xc5
)

// An arena is memory with regions in it. The attackers may change one of them, and nothing else.
type arena struct {
	mem  []byte
	bait *iwarp.MR
	kept []*iwarp.MR // those that no attacker may write to
	read *iwarp.MR   // or only read
}

// newArena registers the parts of an arena: one is open, and one each is only to be read, without any right, of
// another domain, and of a queue pair of an honest peer.
func newArena(v *victim) (*arena, error) {
	a := &arena{}
	all := stag.LocalWrite | stag.RemoteWrite | stag.RemoteRead
	parts := []struct {
		pd     *iwarp.PD
		access stag.Access
		opts   *iwarp.MROptions
	}{
		{v.pd, all, &iwarp.MROptions{BaseTO: baitTO, Durable: nothing{}}},
		{v.pd, stag.RemoteRead, nil},
		{v.pd, stag.LocalWrite, nil},
		{v.own, all, nil},
		{v.own, all, &iwarp.MROptions{QP: v.friends.all[0].server}},
	}
	a.mem = bytes.Repeat([]byte{canary}, guardLen+len(parts)*(partLen+guardLen))
	for i, p := range parts {
		mr, err := p.pd.RegisterMR(a.part(i), p.access, p.opts)
		if err != nil {
			return nil, fmt.Errorf("region %d: %w", i, err)
		}
		a.kept = append(a.kept, mr)
	}
	a.bait, a.kept = a.kept[0], a.kept[1:]
	a.read = a.kept[0]
	return a, nil
}

// nothing is a Flusher without a medium.
type nothing struct{}

func (nothing) Flush(context.Context, int64, int64) error { return nil }

// part is the memory of a region.
func (a *arena) part(i int) []byte {
	at := guardLen + i*(partLen+guardLen)
	return a.mem[at : at+partLen : at+partLen]
}

// told is what attackers know.
func (a *arena) told() attack.Target {
	t := attack.Target{STag: a.bait.STag(), TO: baitTO, Len: partLen}
	for _, mr := range a.kept {
		t.Else = append(t.Else, mr.STag())
	}
	return t
}

// changed returns how many octets have changed, not counting those of the bait.
func (a *arena) changed() (n int) {
	bait := guardLen + partLen
	for i, b := range a.mem {
		if b != canary && (i < guardLen || i >= bait) {
			n++
		}
	}
	return n
}
