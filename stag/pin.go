package stag

import "math/bits"

// Pin resolves one access to n octets at a tagged offset by a stream, and pins the
// region if the access is allowed. user is the PD and the identity of the stream;
// want contains the rights that the region must grant. n is at least 1: accesses of
// length zero are never checked (RFC 5041 section 5.2), so the caller skips them.
//
// The checks come in this order: STag known, all 32 bits, and VALID; scope; rights; wrap
// of TO + n; exact range. The first that fails is the Violation, and nothing is pinned.
// With None, off is the position in the region, and the caller must call
// [Region.Unpin] as soon as its copy is done.
//
// want is LocalWrite alone for the response to an RDMA Read of this side, which holds
// the region: such an access is also allowed while the region is being closed.
//
// Pin takes no lock and allocates nothing.
func (t *Table) Pin(user Scope, s STag, want Access, to uint64, n int) (r *Region, off uint64, v Violation) {
	return t.PinLong(user, s, want, to, uint64(n))
}

// PinLong is Pin for a length from the wire, which may not fit in an int of 32 bits.
func (t *Table) PinLong(user Scope, s STag, want Access, to, n uint64) (r *Region, off uint64, v Violation) {
	r = t.lookup(s)
	refused := invalid | closing
	if want == LocalWrite {
		refused = invalid
	}
	if r == nil || !r.pin(refused) {
		return nil, 0, InvalidSTag
	}
	if v = r.check(user, want, to, n); v != None {
		r.Unpin()
		return nil, 0, v
	}
	return r, to - r.base, None
}

func (r *Region) check(user Scope, want Access, to, n uint64) Violation {
	if !r.scope.admits(user) {
		return NotAssociated
	}
	if !r.access.allows(want) {
		return AccessDenied
	}
	end, carry := bits.Add64(to, n, 0)
	if carry != 0 {
		return Wrap
	}
	// A length that was negative is larger than any region.
	if to < r.base || end > r.base+r.size {
		return Bounds
	}
	return None
}
