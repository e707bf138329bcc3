package solicit

// An arbiter chooses the class whose turn it is: by deficit round robin, or strictly Latency first. A
// class gets a quantum in each of its turns, and keeps the unused part for its next turn, as long as
// it has work.
type arbiter struct {
	strict  bool
	quantum [classes]int64
	deficit [classes]int64 // octets that it may still take
	turn    Class
}

func newArbiter(cfg *Config) arbiter {
	a := arbiter{strict: cfg.Strict, turn: Bulk} // so that Latency comes next
	for c, w := range cfg.Weight {
		a.quantum[c] = quantumUnit * int64(w)
	}
	return a
}

// choose returns the class whose head is next. heads are the sizes of the heads, 0 for none. Unless the
// arbiter is strict, it keeps its choice until that head is gone, whatever arrives meanwhile.
func (a *arbiter) choose(heads [classes]int64) (Class, bool) {
	switch {
	case heads[Latency] == 0 && heads[Bulk] == 0:
		return 0, false
	case a.strict && heads[Latency] != 0:
		return Latency, true
	case a.strict:
		return Bulk, true
	case a.affords(a.turn, heads):
		return a.turn, true
	}
	a.skip(heads)
	for {
		a.turn = a.turn.other()
		if heads[a.turn] != 0 {
			a.deficit[a.turn] += a.quantum[a.turn]
		}
		if a.affords(a.turn, heads) {
			return a.turn, true
		}
	}
}

func (a *arbiter) affords(c Class, heads [classes]int64) bool {
	return heads[c] != 0 && heads[c] <= a.deficit[c]
}

// skip skips the rounds in which neither class would get enough for its head, so that the time that
// choose takes does not depend on the sizes.
func (a *arbiter) skip(heads [classes]int64) {
	rounds := int64(mostOctets)
	for c, n := range heads {
		if n != 0 {
			rounds = min(rounds, (n-a.deficit[c]+a.quantum[c]-1)/a.quantum[c]-1)
		}
	}
	for c, n := range heads {
		if n != 0 && rounds > 0 {
			a.deficit[c] += rounds * a.quantum[c]
		}
	}
}

// took charges a class for its head.
func (a *arbiter) took(c Class, n int64) {
	if !a.strict {
		a.deficit[c] -= n
	}
}

// idle clears the deficit of a class that has no work.
func (a *arbiter) idle(c Class) { a.deficit[c] = 0 }
