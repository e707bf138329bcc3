package rdmap

import "github.com/goiwarp/iwarp/stag"

// gripHolds is how many holds a grip takes of a region at once: the count of a region
// has room for very many of them.
const gripHolds = 64

// A grip takes and releases the holds of many requests in few steps, where one after
// the other names the same region.
type grip struct {
	region *stag.Region
	spare  uint32 // holds of region that nobody has yet, or no longer
}

// take takes one hold of r.
func (g *grip) take(r *stag.Region) {
	switch {
	case r != g.region: // the first time: perhaps the only one
		g.change(r)
		r.Hold()
	case g.spare > 0:
		g.spare--
	default:
		r.HoldN(gripHolds)
		g.spare = gripHolds - 1
	}
}

// give releases one hold of r, at the latest when letGo is called.
func (g *grip) give(r *stag.Region) {
	if r != g.region {
		g.change(r)
	}
	g.spare++
}

// change turns to another region.
func (g *grip) change(r *stag.Region) {
	g.letGo()
	g.region = r
}

// letGo releases what is spare.
func (g *grip) letGo() {
	if g.spare > 0 {
		g.region.ReleaseN(g.spare)
	}
	*g = grip{}
}
