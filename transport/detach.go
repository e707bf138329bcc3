package transport

// A Detacher is a [Stream] that is driven in another way once connection set-up is over.
// One that wraps another detaches that.
type Detacher interface {
	// Detach returns what takes the place of the Stream, which may be itself.
	Detach() Stream
}

// Detach ends the set-up of s and returns what is to be used in its place. The caller owns
// s alone: the program that made the net.Conn below must not use it any more, and finds it
// closed where the Stream has taken over its descriptor.
func Detach(s Stream) Stream {
	if d, ok := s.(Detacher); ok {
		return d.Detach()
	}
	return s
}
