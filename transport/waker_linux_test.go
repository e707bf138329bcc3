//go:build linux && !purego

package transport

// haveRaw reports whether this build has the raw path.
const haveRaw = true

func isParked(s Stream) bool {
	switch s := s.(type) {
	case *tap:
		return isParked(s.Stream)
	case *rawStream:
		s.in.mu.Lock()
		defer s.in.mu.Unlock()
		return s.in.state >= inPoller && s.in.state < called
	case *tcpSetup:
		return isParked(&s.connStream)
	}
	return s.(*connStream).waker.isParked()
}
