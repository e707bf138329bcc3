package op

// A Verdict says whether a request may be served, and how it is refused otherwise.
type Verdict struct {
	Outcome Outcome // OK: it may
	Reason  Reason
}

// A KeyState is what the inner tag of a request has proved.
type KeyState uint8

// The states of a key.
const (
	// NoKey stands for a wrong tag, an unknown region and a missing right, which are not
	// distinguished.
	NoKey KeyState = iota
	// OldKey is the right key of an epoch that is over.
	OldKey
	// RightKey is the right key of a valid epoch.
	RightKey
)

// Judge decides whether a request for n octets at off of a region of that size may be served. Only a
// client that has the key learns about the bounds.
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
