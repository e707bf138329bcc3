package op

// A Verdict is whether a request may be served, and what the answer is if not.
type Verdict struct {
	Outcome Outcome // OK: it may
	Reason  Reason
}

// A KeyState is what the inner tag of a request has proved.
type KeyState uint8

// The states of a key.
const (
	// NoKey stands for a wrong tag, for a region that is unknown and for a right that is missing:
	// they are not told apart.
	NoKey KeyState = iota
	// OldKey is the right key of an epoch that is over.
	OldKey
	// RightKey is the right key of an epoch that holds.
	RightKey
)

// Judge decides whether a request for n octets at off of a region of that size may be served. The
// bounds are told only to a client that has the key.
func Judge(k KeyState, size, off uint64, n uint32) Verdict {
	switch {
	case k == OldKey:
		return Verdict{RemoteAuth, StaleEpoch}
	case k != RightKey:
		return Verdict{RemoteAuth, BadKey}
	case off > size, uint64(n) > size-off:
		return Verdict{Outcome: Bounds}
	}
	return Verdict{}
}
