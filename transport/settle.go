package transport

// A Settler is a [Stream] that is driven in another way once connection set-up is over.
// One that wraps another settles that.
type Settler interface {
	// Settle returns what takes the place of the Stream, which may be itself.
	Settle() Stream
}

// Settle ends the set-up of s and returns what is to be used in its place. The caller owns
// s alone: whoever made the net.Conn below must not use it any more, and finds it closed
// where the Stream has taken over its descriptor.
func Settle(s Stream) Stream {
	if u, ok := s.(Settler); ok {
		return u.Settle()
	}
	return s
}
