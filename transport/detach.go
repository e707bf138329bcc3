package transport

// A Detacher is a [Stream] that is driven in another way after connection set-up. A Detacher
// that wraps another Stream detaches that Stream.
type Detacher interface {
	// Detach returns the Stream to use from now on, which may be the same.
	Detach() Stream
}

// Detach ends the set-up of s and returns the Stream to use instead. The caller must be
// the only user of s: the program that created the underlying net.Conn must not use it any
// more. If the Stream has taken over its descriptor, the net.Conn is closed.
func Detach(s Stream) Stream {
	if d, ok := s.(Detacher); ok {
		return d.Detach()
	}
	return s
}
