//go:build !linux || purego

package transport

// haveRaw tells whether this build has the raw path.
const haveRaw = false

func wakerOf(s Stream) *waker {
	if t, ok := s.(*tap); ok {
		return wakerOf(t.Stream)
	}
	return &s.(*connStream).waker
}
