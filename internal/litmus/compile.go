package main

import (
	"fmt"
	"slices"
	"strings"
)

// The values in an outcome take two bits each. torn is the value of a block some of whose octets
// are of one value, and some of another.
const (
	torn      = 3
	valueBits = 2
	maxValues = 6
)

// A compiled program uses numbers instead of names.
type compiled struct {
	*program
	names    []string // of the values, in order
	patterns []pattern
	ops      []op // of all threads
	threads  [][]int
	uses     [variables]bool
	results  []int   // by op: the index of its value, or -1
	sights   [][]int // by op: the indices of its sights
	final    []int
}

// A pattern matches keys: a key is all values of a run.
type pattern struct{ mask, want int }

func (q pattern) matches(key int) bool { return key&q.mask == q.want }

// compile returns an error if the program is not well formed, or if its outcomes do not cover all
// keys.
func compile(q *program) (*compiled, error) {
	k := &compiled{program: q}
	for _, ops := range q.threads {
		var thread []int
		for _, o := range ops {
			thread = append(thread, len(k.ops))
			k.add(o)
		}
		k.threads = append(k.threads, thread)
	}
	for _, s := range q.final {
		k.uses[s.of] = true
		k.final = append(k.final, k.value(s.as))
	}
	if len(k.names) > maxValues {
		return nil, fmt.Errorf("%s: more than %d values", q.name, maxValues)
	}
	for _, o := range q.outcomes {
		pat, err := k.pattern(o.when)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.name, err)
		}
		if err := o.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", q.name, err)
		}
		k.patterns = append(k.patterns, pat)
	}
	for key := range 1 << (valueBits * len(k.names)) {
		if k.judge(key) < 0 {
			return nil, fmt.Errorf("%s: nothing judges %s", q.name, k.describe(key))
		}
	}
	return k, nil
}

func (o *outcome) check() error {
	switch {
	case o.is != allowed && o.seen|o.never != 0:
		return fmt.Errorf("%q: only what is allowed has to be seen, or not", o.when)
	case o.is == allowed && o.seen != everywhere && o.why == "":
		return fmt.Errorf("%q: no word about why it is not seen everywhere", o.when)
	case o.seen&o.never != 0:
		return fmt.Errorf("%q: seen, and never", o.when)
	}
	return nil
}

func (k *compiled) add(o op) {
	k.ops = append(k.ops, o)
	k.uses[o.on], k.uses[o.into] = true, true
	if o.store {
		k.uses[c] = true
	}
	k.results = append(k.results, k.value(o.as))
	var sights []int
	for _, s := range o.sees {
		k.uses[s.of] = true
		sights = append(sights, k.value(s.as))
	}
	k.sights = append(k.sights, sights)
}

// value adds a name, and returns its index, or -1 for an empty name.
func (k *compiled) value(name string) int {
	if name == "" {
		return -1
	}
	k.names = append(k.names, name)
	return len(k.names) - 1
}

func (k *compiled) pattern(when string) (q pattern, err error) {
	for term := range strings.FieldsSeq(when) {
		name, value, _ := strings.Cut(term, "=")
		i, v := slices.Index(k.names, name), strings.Index("012t", value)
		if i < 0 || v < 0 || len(value) != 1 {
			return q, fmt.Errorf("%q of %q: no such value", term, when)
		}
		q.mask |= torn << (valueBits * i)
		q.want |= v << (valueBits * i)
	}
	return q, nil
}

// judge returns the index of the outcome that applies, or -1 if there is none.
func (k *compiled) judge(key int) int {
	return slices.IndexFunc(k.patterns, func(q pattern) bool { return q.matches(key) })
}

// describe writes a key in the form of outcome.when.
func (k *compiled) describe(key int) string {
	var terms []string
	for i, name := range k.names {
		terms = append(terms, name+"="+"012t"[key>>(valueBits*i)&torn:][:1])
	}
	return strings.Join(terms, " ")
}
