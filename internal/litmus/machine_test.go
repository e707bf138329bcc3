package main

import (
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProgramsThatAreNotWellFormed(t *testing.T) {
	threads := [][]op{{write(nearA, x, 1), read(nearA, x).named("r")}}
	for says, outcomes := range map[string][]outcome{
		"nothing judges r=0":                  {{when: "r=1", is: required}},
		`"q=1" of "q=1": no such value`:       {{when: "q=1"}, {}},
		`"r=4" of "r=4": no such value`:       {{when: "r=4"}, {}},
		`"r" of "r": no such value`:           {{when: "r"}, {}},
		"only what is allowed has to be seen": {{is: required, seen: inOrder}},
		"no word about why it is not seen":    {{is: allowed, seen: inOrder}},
		`"r=1": seen, and never`:              {{when: "r=1", is: allowed, seen: inOrder, never: inOrder, why: "so"}, {}},
	} {
		_, err := compile(&program{name: "p", threads: threads, outcomes: outcomes})
		require.ErrorContains(t, err, says)
	}
	many := program{name: "p"}
	for range maxValues + 1 {
		many.final = append(many.final, sees("x", x))
	}
	_, err := compile(&many)
	require.ErrorContains(t, err, "more than 6 values")
}

func TestProgramsFitTheMachine(t *testing.T) {
	for _, g := range groups {
		names := make(map[string]bool)
		for i := range g.programs {
			k, err := compile(&g.programs[i])
			require.NoError(t, err)
			require.False(t, names[k.name], "%q is there twice", k.name)
			names[k.name] = true
			require.Less(t, len(k.ops), maxOps, k.name)
			used := make(map[end]int)
			for i, thread := range k.program.threads {
				for _, o := range thread {
					if o.verb != 0 {
						require.Contains(t, []int{0, i + 1}, used[o.at], "%s: two threads use end %v", k.name, o.at)
						used[o.at] = i + 1
					}
				}
			}
		}
	}
}

func TestValues(t *testing.T) {
	const run = 7
	b := make([]uint64, 3)
	for value := range uint64(3) {
		fill(b, word(run, value))
		require.EqualValues(t, value, valueIn(b, run))
		require.Zero(t, valueIn(b, run+1), "what another run has left")
	}
	b[1] = word(run, 1)
	require.EqualValues(t, torn, valueIn(b, run))
	b[0], b[2] = word(run-1, 1), word(run-2, 2)
	b[1] = word(run-1, 2)
	require.Zero(t, valueIn(b, run), "left by several runs")

	k := newDisk(small)
	a := newArea(small, 1)
	fill(a.block(0, 0, small.words), word(run, 1))
	_, err := k.WriteAt(a.bytes, int64(small.blockLen()))
	require.NoError(t, err)
	require.Zero(t, k.durable(p, 1, 2, run))
	require.NoError(t, k.Flush(t.Context(), int64(small.blockLen()), wordLen))
	require.EqualValues(t, 1, k.durable(p, 1, 1, run))
	require.EqualValues(t, torn, k.durable(p, 1, 2, run))
}

// TestPlanKeepsTheOrderOfEachRun: however the runs of a burst are interleaved.
func TestPlanKeepsTheOrderOfEachRun(t *testing.T) {
	q := &program{threads: [][]op{
		{write(nearA, x, 1), send(nearA, 1), wait, read(nearB, x), send(nearA, 2)}, {send(farB, 1)},
	}, outcomes: []outcome{{is: required}}}
	k, err := compile(q)
	require.NoError(t, err)
	b := burst{compiled: k}
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		b.plan(rnd, small, 10)
		require.LessOrEqual(t, b.n, 10)
		require.Len(t, b.phases[0], 2)
		for slot := range int16(b.n) {
			require.Equal(t, []int16{0, 1}, opsOf(b.phases[0][0], slot))
			require.Equal(t, []int16{3, 4}, opsOf(b.phases[0][1], slot))
			require.Equal(t, []int16{5}, opsOf(b.phases[1][0], slot))
			require.Equal(t, []int16{1, 4}, opsOf(b.messages[nearA], slot))
		}
		require.Equal(t, step{flush, int16(nearA)}, b.messages[nearA][2*b.n])
		require.Equal(t, step{flush, int16(nearB)}, b.messages[nearB][0])
		require.Len(t, b.messages[farB], b.n+1)
	}
}

// opsOf returns the operations of one run.
func opsOf(steps []step, slot int16) (ops []int16) {
	for _, st := range steps {
		if st.op >= 0 && st.slot == slot {
			ops = append(ops, st.op)
		}
	}
	return ops
}

func TestJudgeFindsWhatMustNotBe(t *testing.T) {
	q := &program{name: "p", rule: "5.5", threads: [][]op{{read(nearA, x).named("r")}}, outcomes: []outcome{
		{when: "r=0", is: required},
		{when: "r=1", is: allowed, seen: reordering, never: inOrder, why: "so"},
		{is: forbidden},
	}}
	k, err := compile(q)
	require.NoError(t, err)
	tallies := func(tcp, records []uint64) []*tally {
		return []*tally{
			{program: k, layer: layer{name: "tcp", kind: inOrder}, counts: tcp, runs: 9},
			{program: k, layer: layer{name: "records", kind: reordering}, counts: records, runs: 9},
		}
	}
	require.NoError(t, judge(tallies([]uint64{9, 0, 0, 0}, []uint64{8, 1, 0, 0}), true))
	require.EqualError(t, judge(tallies([]uint64{9, 0, 0, 0}, []uint64{8, 0, 0, 1}), false), "p (5.5), over records: r=t: forbidden, in 1 of 9 runs")
	require.ErrorContains(t, judge(tallies([]uint64{8, 1, 0, 0}, []uint64{8, 1, 0, 0}), false), "over tcp: r=1: in 1 of 9 runs, and docs/ordering.md says never")
	require.EqualError(t, judge(tallies([]uint64{9, 0, 0, 0}, []uint64{9, 0, 0, 0}), true), "p (5.5): not seen in 9 runs: r=1")
	require.EqualError(t, judge(tallies([]uint64{0, 0, 0, 0}, []uint64{8, 1, 0, 0}), true), "p (5.5): not seen in 9 runs: r=0 over tcp")
	ts := tallies([]uint64{9, 0, 0, 0}, []uint64{8, 1, 0, 0})
	ts[1].err = errOrder
	require.ErrorContains(t, judge(ts, true), "records: work requests complete in another order")
}

func TestOptions(t *testing.T) {
	require.NoError(t, litmus(io.Discard, options{runs: 100, program: "Write, Read", layer: "pipe", seed: 1}))
	require.NoError(t, litmus(io.Discard, options{doc: true}))
	for _, o := range []options{{program: "("}, {program: "x", layer: "("}, {program: "x", layer: "pipe"}, {program: "Write, Read", layer: "x"}} {
		require.Error(t, litmus(io.Discard, o), "%+v", o)
	}
	require.False(t, slices.ContainsFunc(allLayers, func(l layer) bool { return l.kind == 0 }))
}
