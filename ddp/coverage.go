package ddp

import (
	"slices"

	"github.com/goiwarp/iwarp/transport"
)

// A coverage records which octets of the current message have been placed. An untagged message is delivered when all of
// its segments have been placed (RFC 5041 section 5.4): otherwise the ULP would take old contents of its buffer for data.
//
// A sender should send the segments in the order of their offsets (section 5.3). Then only next is needed.
type coverage struct {
	next  uint64 // all octets before next have been placed
	ahead []run  // octets placed beyond next, in order, with a hole before each run
}

// A run is the octets of a message from one offset to another.
type run struct{ from, to uint64 }

// maxRuns bounds what is recorded of a message whose segments arrive in another order.
const maxRuns = 64

// begun reports whether anything has been placed.
func (c *coverage) begun() bool { return c.next > 0 || len(c.ahead) > 0 }

// check returns what is wrong with a segment of n octets at mo. The last segment of a message has the highest offset
// (RFC 5041 section 4.1), and completes the message.
func (c *coverage) check(mo uint32, n int, last bool) error {
	r := run{uint64(mo), uint64(mo) + uint64(n)}
	if r.from == c.next && len(c.ahead) == 0 {
		return nil
	}
	i := c.place(r)
	switch {
	case last:
		return transport.Faultf(transport.DDPOffset, "MO %d in the last segment of a message of which the first %d octets have come", mo, c.next)
	case n == 0:
		return nil
	case r.from < c.next, i > 0 && r.from < c.ahead[i-1].to, i < len(c.ahead) && r.to > c.ahead[i].from:
		return transport.Faultf(transport.DDPOffset, "MO %d: an octet of the message comes twice", mo)
	case len(c.ahead) == maxRuns && !c.adjoins(r, i):
		return transport.Faultf(transport.DDPLocalCatastrophic, "MO %d: a message with %d holes", mo, maxRuns)
	}
	return nil
}

// adjoins reports whether r, whose place is i, adjoins another run, and so does not add one.
func (c *coverage) adjoins(r run, i int) bool {
	return r.from == c.next || i > 0 && c.ahead[i-1].to == r.from || i < len(c.ahead) && r.to == c.ahead[i].from
}

// place returns the index of the first run that does not begin before r.
func (c *coverage) place(r run) int {
	i := 0
	for i < len(c.ahead) && c.ahead[i].from < r.from {
		i++
	}
	return i
}

// add adds a segment that check has accepted, and that is not the last one of the message.
func (c *coverage) add(mo uint32, n int) {
	r := run{uint64(mo), uint64(mo) + uint64(n)}
	switch {
	case n == 0:
		return
	case r.from == c.next:
		c.next = r.to
	default:
		c.ahead = slices.Insert(c.ahead, c.place(r), r)
	}
	c.join()
}

// join merges adjoining runs.
func (c *coverage) join() {
	for len(c.ahead) > 0 && c.ahead[0].from == c.next {
		c.next = c.ahead[0].to
		c.ahead = slices.Delete(c.ahead, 0, 1)
	}
	for i := len(c.ahead) - 1; i > 0; i-- {
		if c.ahead[i-1].to == c.ahead[i].from {
			c.ahead[i-1].to = c.ahead[i].to
			c.ahead = slices.Delete(c.ahead, i, i+1)
		}
	}
}

// reset begins the next message.
func (c *coverage) reset() { c.next, c.ahead = 0, nil }
