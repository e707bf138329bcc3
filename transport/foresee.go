package transport

// A Foreseer is a [Placer] that can know what is to come: what a Read asked for, say.
// An LLP may then read straight into place.
//
// That does not steer octets by what a peer says: they go where this side expects
// them, into memory whose contents are undefined until they have come. Nothing is
// delivered before it is verified.
type Foreseer interface {
	Placer

	// Foresee appends to dst the segments that come next if the peer does nothing but
	// what it was asked for, in order and without a gap: as many as fit into room
	// octets of payload, each of size octets with its header unless a message ends
	// with it. Their memory is pinned until Release, so there must be no waiting. No two
	// of them overlap. With alone none is where another peer may write: octets that are
	// verified where they are must not change meanwhile.
	Foresee(dst []Foreseen, size, room int, alone bool) []Foreseen
	// Release ends what Foresee began.
	Release()
	// Placed takes a segment that has come as foreseen, whole and verified, in place
	// of Segment. It must be called after Release.
	Placed(seq uint64, f *Foreseen) error
}

// ForeseenHeadLen is the length of the header of a segment that can be foreseen, a
// tagged one of DDP.
const ForeseenHeadLen = 14

// A Foreseen is a segment that has not come yet.
type Foreseen struct {
	Head    [ForeseenHeadLen]byte // octet for octet
	Payload []byte                // where the rest of it belongs
	Began   uint64                // the Foreseer's own
}
