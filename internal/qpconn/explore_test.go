package qpconn

import (
	"fmt"
	"strings"
)

// An edge is one step that a state allows. The program itself will take an inner step sooner or later. The other steps
// are the world's: they may or may not come.
type edge[S comparable] struct {
	to    S
	label string
	inner bool
}

// A model is a system whose states can be enumerated.
type model[S comparable] struct {
	steps func(S, func(edge[S]))
	// broken reports what is wrong with a state, and resting what is wrong with a state in which the program has nothing
	// more to do. An empty string means nothing.
	broken, resting func(S) string
}

// A visit is what an exploration has found.
type visit struct {
	states, steps, atRest int
}

// explore visits each state that can be reached from start, breadth first. The error describes the first state that is
// broken, has a fault at rest, or is part of a circle of inner steps, which would go on for ever. It also gives the
// shortest way there.
func (m *model[S]) explore(start S, limit int) (v visit, err error) {
	x := &exploration[S]{ids: map[S]int32{start: 0}, states: []S{start}, from: []int32{-1}, label: []uint16{0}, names: []string{"start"}, numbers: map[string]uint16{"start": 0}}
	for at := 0; at < len(x.states); at++ {
		if len(x.states) > limit {
			return x.visit(), fmt.Errorf("more than %d states", limit)
		}
		s := x.states[at]
		if fault := m.broken(s); fault != "" {
			return x.visit(), x.fault(at, fault)
		}
		rests := true
		x.begin = append(x.begin, len(x.inner))
		m.steps(s, func(e edge[S]) {
			x.steps++
			id := x.id(e, int32(at))
			if e.inner {
				rests = false
				x.inner = append(x.inner, id)
			}
		})
		if !rests {
			continue
		}
		x.atRest++
		if fault := m.resting(s); fault != "" {
			return x.visit(), x.fault(at, "at rest: "+fault)
		}
	}
	x.begin = append(x.begin, len(x.inner))
	return x.visit(), x.circle()
}

// An exploration holds the states seen so far.
type exploration[S comparable] struct {
	ids     map[S]int32
	states  []S
	from    []int32  // by state: the state it was first reached from
	label   []uint16 // by state: the step that led there, as an index of names
	names   []string
	numbers map[string]uint16
	inner   []int32 // targets of the inner steps
	begin   []int   // by state: where its own steps begin in inner

	steps, atRest int
}

func (x *exploration[S]) visit() visit { return visit{len(x.states), x.steps, x.atRest} }

// id returns the number of the state that e leads to.
func (x *exploration[S]) id(e edge[S], at int32) int32 {
	if id, ok := x.ids[e.to]; ok {
		return id
	}
	id := int32(len(x.states))
	n, ok := x.numbers[e.label]
	if !ok {
		n = uint16(len(x.names))
		x.names, x.numbers[e.label] = append(x.names, e.label), n
	}
	x.ids[e.to] = id
	x.states, x.from, x.label = append(x.states, e.to), append(x.from, at), append(x.label, n)
	return id
}

func (x *exploration[S]) fault(at int, what string) error {
	var way []string
	for i := int32(at); i >= 0; i = x.from[i] {
		way = append(way, x.names[x.label[i]])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, after %d steps:", what, len(way)-1)
	for i := len(way) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "\n  %s", way[i])
	}
	fmt.Fprintf(&b, "\n%+v", x.states[at])
	return fmt.Errorf("%s", b.String())
}

// circle looks for a circle of inner steps, depth first: a step to a state that is still
// being followed closes one.
func (x *exploration[S]) circle() error {
	const (
		fresh = iota
		followed
		done
	)
	colour := make([]uint8, len(x.states))
	next := append([]int(nil), x.begin...)
	var way []int32
	for root := range x.states {
		if colour[root] != fresh {
			continue
		}
		way = append(way[:0], int32(root))
		colour[root] = followed
		for len(way) > 0 {
			at := way[len(way)-1]
			if next[at] == x.begin[at+1] {
				colour[at] = done
				way = way[:len(way)-1]
				continue
			}
			to := x.inner[next[at]]
			next[at]++
			switch colour[to] {
			case fresh:
				colour[to] = followed
				way = append(way, to)
			case followed:
				return x.fault(int(to), "the program goes round in a circle")
			}
		}
	}
	return nil
}
