package program

import "slices"

// Shrink makes a failing program smaller, as long as it fails: it drops lines, makes numbers
// smaller and options plainer, and then drops connections and Configs. fails runs a program over
// its Configs, and is called at most most times.
func Shrink(p Program, most int, fails func(Program) bool) Program {
	s := &shrinker{p: p, left: most, fails: fails}
	for again := true; again && s.left > 0; {
		again = s.dropOps()
		again = s.plainOps() || again
		again = s.plainProgram() || again
	}
	s.plainConfigs()
	return s.p
}

type shrinker struct {
	p     Program
	left  int
	fails func(Program) bool
}

// try adopts a program if it fails.
func (s *shrinker) try(p Program) bool {
	if s.left <= 0 {
		return false
	}
	s.left--
	if !s.fails(p) {
		return false
	}
	s.p = p
	return true
}

func (s *shrinker) withOps(ops []Op) Program {
	p := s.p
	p.Ops = ops
	return p
}

// dropOps drops lines: many together first, and then fewer.
func (s *shrinker) dropOps() bool {
	dropped := false
	for n := max(len(s.p.Ops)/2, 1); n > 0; n /= 2 {
		for at := 0; at < len(s.p.Ops); {
			end := min(at+n, len(s.p.Ops))
			if s.try(s.withOps(slices.Delete(slices.Clone(s.p.Ops), at, end))) {
				dropped = true
			} else {
				at = end
			}
		}
	}
	return dropped
}

// plainOps makes the parameters of each line plainer.
func (s *shrinker) plainOps() bool {
	changed := false
	for i := range s.p.Ops {
		for _, o := range s.p.Ops[i].plainer() {
			ops := slices.Clone(s.p.Ops)
			ops[i] = o
			if s.try(s.withOps(ops)) {
				changed = true
				break // the next round tries the others
			}
		}
	}
	return changed
}

// plainer returns operations with one parameter less, or with a smaller number.
func (o Op) plainer() []Op {
	var all []Op
	add := func(change func(*Op)) {
		p := o
		if change(&p); p != o {
			all = append(all, p)
		}
	}
	for _, f := range intsOf {
		add(func(p *Op) { *f.at(p) = 0 })
		add(func(p *Op) { *f.at(p) /= 2 })
		add(func(p *Op) { *f.at(p) = max(*f.at(p)-1, 0) })
	}
	for _, f := range wordsOf {
		add(func(p *Op) { *f.at(p) = 0 })
		add(func(p *Op) { *f.at(p) = min(*f.at(p), 1) })
	}
	for _, f := range flagsOf {
		add(func(p *Op) { *f.at(p) = false })
	}
	add(func(p *Op) { p.Fence = "" })
	add(func(p *Op) { p.How = "" })
	return all
}

// plainProgram drops the SRQ, connections without a line, and Configs.
func (s *shrinker) plainProgram() bool {
	changed := false
	if p := s.p; p.SRQ {
		p.SRQ = false
		changed = s.try(p)
	}
	for conn := s.p.Conns - 1; conn >= 0 && s.p.Conns > 1; conn-- {
		changed = s.try(s.p.without(conn)) || changed
	}
	for i := 0; i < len(s.p.Configs) && len(s.p.Configs) > 1; {
		p := s.p
		p.Configs = slices.Delete(slices.Clone(p.Configs), i, i+1)
		if s.try(p) {
			changed = true
		} else {
			i++
		}
	}
	return changed
}

// without returns the program without a connection.
func (p Program) without(conn int) Program {
	var ops []Op
	for _, o := range p.Ops {
		if o.End.Conn > conn {
			o.End.Conn--
		} else if o.End.Conn == conn {
			continue
		}
		ops = append(ops, o)
	}
	p.Ops = ops
	p.Conns--
	return p
}

// plainConfigs drops options of the Configs.
func (s *shrinker) plainConfigs() {
	for i := range s.p.Configs {
		for again := true; again; {
			again = false
			for _, c := range s.p.Configs[i].plainer() {
				p := s.p
				p.Configs = slices.Clone(p.Configs)
				p.Configs[i] = c
				if again = s.try(p); again {
					break
				}
			}
		}
	}
}
