//go:build !linux || purego

package transport

// haveRaw reports whether this build has the raw path.
const haveRaw = false

func isParked(s Stream) bool {
	if t, ok := s.(*tap); ok {
		return isParked(t.Stream)
	}
	return s.(*connStream).waker.isParked()
}
