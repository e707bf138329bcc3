package rdmap

import "github.com/goiwarp/iwarp/stag"

// cachedHolds is how many holds a holdCache takes of a region at once. The counter of a region
// is large enough for that.
const cachedHolds = 64

// A holdCache takes and releases holds of a region in groups, if consecutive requests use the
// same region.
type holdCache struct {
	region *stag.Region
	spare  uint32 // holds of region that belong to no request
}

// hold takes one hold of r.
func (h *holdCache) hold(r *stag.Region) {
	switch {
	case r != h.region: // the first hold of the region, perhaps the only one
		h.change(r)
		r.Hold()
	case h.spare > 0:
		h.spare--
	default:
		r.HoldN(cachedHolds)
		h.spare = cachedHolds - 1
	}
}

// release releases one hold of r, no later than flush.
func (h *holdCache) release(r *stag.Region) {
	if r != h.region {
		h.change(r)
	}
	h.spare++
}

// change flushes the cache and makes r its region.
func (h *holdCache) change(r *stag.Region) {
	h.flush()
	h.region = r
}

// flush releases the spare holds.
func (h *holdCache) flush() {
	if h.spare > 0 {
		h.region.ReleaseN(h.spare)
	}
	*h = holdCache{}
}
