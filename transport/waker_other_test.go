//go:build !linux || purego

package transport

// haveRaw tells whether this build has the raw path.
const haveRaw = false

func wakerOf(s Stream) *waker { return &s.(*connStream).waker }
