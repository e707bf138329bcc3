package rdmap

import "github.com/goiwarp/iwarp/stag"

// cachedHolds is how many holds a holdCache takes of a region at once: the count of a region
// has room for very many of them.
const cachedHolds = 64

// A holdCache takes and releases the holds of many requests in few steps, where one after
// the other names the same region.
type holdCache struct {
	region *stag.Region
	spare  uint32 // holds of region that belong to no request
}

// hold takes one hold of r.
func (h *holdCache) hold(r *stag.Region) {
	switch {
	case r != h.region: // the first time: perhaps the only one
		h.change(r)
		r.Hold()
	case h.spare > 0:
		h.spare--
	default:
		r.HoldN(cachedHolds)
		h.spare = cachedHolds - 1
	}
}

// release releases one hold of r, at the latest when flush is called.
func (h *holdCache) release(r *stag.Region) {
	if r != h.region {
		h.change(r)
	}
	h.spare++
}

// change turns to another region.
func (h *holdCache) change(r *stag.Region) {
	h.flush()
	h.region = r
}

// flush releases what is spare.
func (h *holdCache) flush() {
	if h.spare > 0 {
		h.region.ReleaseN(h.spare)
	}
	*h = holdCache{}
}
