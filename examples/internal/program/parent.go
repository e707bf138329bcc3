package program

import "io"

// WhenParentEnds calls end when in does: the standard input of a process. The process that has started it has the other end, and may be
// killed.
func WhenParentEnds(in io.Reader, end func()) {
	go func() {
		_, _ = io.Copy(io.Discard, in)
		end()
	}()
}
