package measure

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
)

// An Order is a sequence of the files of a package, callers first.
type Order struct {
	Files   []string
	Up      []*Arrow // the arrows with calls that run back up, the heaviest first
	UpN     int      // their weight
	All     int      // the weight of all arrows with calls
	Largest int      // how many files the largest strongly connected component has: each leads to each
}

// Percent returns the share of the weight that runs back up.
func (o *Order) Percent() float64 {
	if o.All == 0 {
		return 0
	}
	return 100 * float64(o.UpN) / float64(o.All)
}

// Unit counts every arrow once.
func Unit(*Arrow) int { return 1 }

// restarts is how often best searches from another starting point. More restarts find nothing better for
// the existing packages.
const restarts = 200

// BestOrder finds the order of files in which the arrows that run back up weigh least. Arrows
// without calls do not count. That is the minimum feedback arc set: it is found exactly file by file
// of the acyclic part, and in each strongly connected component by a local search from many
// starting points, which is the same in every run. So the result is an upper bound, and a tight one.
func BestOrder(arrows []*Arrow, weight func(*Arrow) int) *Order {
	g := newGraph(arrows, weight)
	var order []int
	o := &Order{}
	for _, part := range g.components() {
		order = append(order, g.best(part)...)
		o.Largest = max(o.Largest, len(part))
	}
	at := make([]int, len(order))
	for i, v := range order {
		at[v] = i
		o.Files = append(o.Files, g.files[v])
	}
	for _, a := range arrows {
		if len(a.Calls) == 0 {
			continue
		}
		w := weight(a)
		o.All += w
		if at[g.index[a.From]] > at[g.index[a.To]] {
			o.UpN += w
			o.Up = append(o.Up, a)
		}
	}
	slices.SortStableFunc(o.Up, func(a, b *Arrow) int { return cmp.Compare(b.Weight(), a.Weight()) })
	return o
}

// A graph has the files as vertices, and in w the weight of the arrow from i to j.
type graph struct {
	files []string
	index map[string]int
	w     [][]int
}

func newGraph(arrows []*Arrow, weight func(*Arrow) int) *graph {
	g := &graph{index: make(map[string]int)}
	for _, a := range arrows {
		g.index[a.From], g.index[a.To] = 0, 0
	}
	g.files = slices.Sorted(maps.Keys(g.index))
	for i, f := range g.files {
		g.index[f] = i
		g.w = append(g.w, make([]int, len(g.files)))
	}
	for _, a := range arrows {
		if len(a.Calls) > 0 {
			g.w[g.index[a.From]][g.index[a.To]] = weight(a)
		}
	}
	return g
}

// components returns the strongly connected components, callers first (Tarjan).
func (g *graph) components() [][]int {
	n := len(g.files)
	number, low := make([]int, n), make([]int, n)
	on := make([]bool, n)
	var stack []int
	var parts [][]int
	next := 0
	var visit func(v int)
	visit = func(v int) {
		next++
		number[v], low[v] = next, next
		stack, on[v] = append(stack, v), true
		for u, w := range g.w[v] {
			switch {
			case w == 0:
			case number[u] == 0:
				visit(u)
				low[v] = min(low[v], low[u])
			case on[u]:
				low[v] = min(low[v], number[u])
			}
		}
		if low[v] == number[v] {
			i := slices.Index(stack, v)
			parts = append(parts, slices.Sorted(slices.Values(stack[i:])))
			for _, u := range stack[i:] {
				on[u] = false
			}
			stack = stack[:i]
		}
	}
	for v := range n {
		if number[v] == 0 {
			visit(v)
		}
	}
	slices.Reverse(parts) // Tarjan finds callees first
	return parts
}

// best orders the vertices of one component.
func (g *graph) best(part []int) []int {
	if len(part) == 1 {
		return part
	}
	rnd := rand.New(rand.NewPCG(1, uint64(len(part))))
	order := slices.Clone(part)
	g.improve(order)
	best, cost := slices.Clone(order), g.cost(order)
	for range restarts {
		// A third of the vertices go somewhere else, so that most of what was found stays.
		copy(order, best)
		for range 1 + len(order)/3 {
			move(order, rnd.IntN(len(order)), rnd.IntN(len(order)))
		}
		g.improve(order)
		if c := g.cost(order); c <= cost {
			cost = c
			copy(best, order)
		}
	}
	return best
}

// improve moves one vertex at a time to where it costs least, until no move helps.
func (g *graph) improve(order []int) {
	for again := true; again; {
		again = false
		for i := range order {
			if to := g.place(order, i); to != i {
				move(order, i, to)
				again = true
			}
		}
	}
}

// place returns where the vertex at i of the order costs least.
func (g *graph) place(order []int, i int) int {
	v := order[i]
	to, least := i, 0
	// To go behind u costs the arrow from v to u, which then runs up, and saves the one from u.
	for j, cost := i+1, 0; j < len(order); j++ {
		u := order[j]
		if cost += g.w[v][u] - g.w[u][v]; cost < least {
			to, least = j, cost
		}
	}
	for j, cost := i-1, 0; j >= 0; j-- {
		u := order[j]
		if cost += g.w[u][v] - g.w[v][u]; cost < least {
			to, least = j, cost
		}
	}
	return to
}

// cost returns the weight of the arrows that run back up.
func (g *graph) cost(order []int) int {
	n := 0
	for i, v := range order {
		for _, u := range order[:i] {
			n += g.w[v][u]
		}
	}
	return n
}

// move moves the element at i to j.
func move(order []int, i, j int) {
	v := order[i]
	copy(order[i:], order[i+1:])
	copy(order[j+1:], order[j:len(order)-1])
	order[j] = v
}
