package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"

	"github.com/goiwarp/iwarp"
)

// An observer takes the messages that arrive at an end, and looks at memory immediately.
type observer struct {
	rig   *rig
	rnd   *rand.Rand
	burst *burst
	at    end
	begin chan context.Context

	sges     []iwarp.SGE
	wrs      []iwarp.RecvWR
	wcs      [32]iwarp.WC
	expected []step
	received int
}

func newObserver(g *rig, b *burst, at end) *observer {
	return &observer{
		rig: g, rnd: rand.New(rand.NewPCG(g.rnd.Uint64(), 0)), burst: b, at: at, begin: make(chan context.Context, 1),
		sges: make([]iwarp.SGE, recvDepth), wrs: make([]iwarp.RecvWR, 0, recvDepth),
	}
}

// post posts the receives of a burst.
func (v *observer) post() error {
	v.expected, v.received = v.burst.messages[v.at.peer()], 0
	v.wrs = v.wrs[:0]
	h := v.rig.sides[v.at.host()]
	for i, st := range v.expected {
		wr := iwarp.RecvWR{ID: uint64(i)}
		if st.op >= 0 && v.burst.ops[st.op].sends() {
			v.sges[i] = h.local(v.burst.ops[st.op].into, int(st.op), int(st.slot), v.rig.layer.words)
			wr.Local = v.sges[i : i+1]
		}
		v.wrs = append(v.wrs, wr)
	}
	return v.rig.qps[v.at].PostRecv(v.wrs...)
}

// serve observes bursts.
func (v *observer) serve(done chan<- error) {
	for ctx := range v.begin {
		done <- v.all(ctx)
	}
}

// all takes the messages of a burst.
func (v *observer) all(ctx context.Context) error {
	spins := v.rnd.IntN(2) * v.rnd.IntN(100)
	for v.received < len(v.expected) {
		n, err := v.some(ctx, spins)
		if err != nil {
			return fmt.Errorf("%v: %d messages do not arrive: %w", v.at, len(v.expected)-v.received, err)
		}
		for i := range n {
			if err := v.completed(&v.wcs[i]); err != nil {
				return fmt.Errorf("%v: %w", v.at, err)
			}
		}
	}
	return nil
}

// some polls for a while, since a goroutine that polls sees a completion sooner than one that
// receives by itself, and then waits.
func (v *observer) some(ctx context.Context, spins int) (int, error) {
	cq := v.rig.qps[v.at].RecvCQ()
	for range spins {
		if n := cq.Poll(v.wcs[:]); n > 0 {
			return n, nil
		}
		runtime.Gosched()
	}
	return cq.Wait(ctx, v.wcs[:])
}

var errReceives = errors.New("messages do not take the receives in their order")

func (v *observer) completed(wc *iwarp.WC) error {
	if err := wc.Err(); err != nil {
		return err
	}
	if v.received == len(v.expected) || wc.ID != uint64(v.received) {
		return errReceives
	}
	b, st := v.burst, v.expected[v.received]
	v.received++
	if st.op < 0 {
		return nil
	}
	o, run := &b.ops[st.op], b.run(st.slot)
	v.rig.lookAround(b, st, v.at)
	if b.results[st.op] < 0 {
		return nil
	}
	if wc.Op == iwarp.OpRecvImm {
		b.note(st.slot, b.results[st.op], valueOf(binary.NativeEndian.Uint64(wc.Imm[:]), run))
		return nil
	}
	h := v.rig.sides[v.at.host()]
	b.note(st.slot, b.results[st.op], valueIn(h.memory(o.into, int(st.op), int(st.slot), max(1, int(wc.Len)/wordLen)), run))
	return nil
}
