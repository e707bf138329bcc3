package host

import (
	"errors"
	"slices"
)

// A coverage records which octets of a buffer were moved: usually one growing run from the first octet
// on. Over SCTP segments arrive in any order, so there may be several runs.
type coverage struct {
	runs []run // in ascending order, not adjacent
}

type run struct{ from, to int }

// maxRuns bounds the memory that a target can make this side use.
const maxRuns = 256

var errScattered = errors.New("nvme: the target moves its data in too many pieces")

func (c *coverage) clear() { c.runs = c.runs[:0] }

// add records n octets from off on.
func (c *coverage) add(off, n int) error {
	if n == 0 {
		return nil
	}
	r := run{off, off + n}
	i, _ := slices.BinarySearchFunc(c.runs, r.from, func(e run, from int) int { return e.to - from })
	j := i
	for ; j < len(c.runs) && c.runs[j].from <= r.to; j++ {
		r.from, r.to = min(r.from, c.runs[j].from), max(r.to, c.runs[j].to)
	}
	if i == j && len(c.runs) == maxRuns {
		return errScattered
	}
	c.runs = slices.Replace(c.runs, i, j, r)
	return nil
}

// whole reports whether all of n octets were moved.
func (c *coverage) whole(n int) bool {
	return n == 0 || len(c.runs) == 1 && c.runs[0] == run{0, n}
}
