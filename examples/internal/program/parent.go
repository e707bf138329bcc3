package program

import "io"

// WhenParentEnds calls end when in, the standard input of a process, ends. The process that has started this one holds the other end,
// and may be killed.
func WhenParentEnds(in io.Reader, end func()) {
	go func() {
		_, _ = io.Copy(io.Discard, in)
		end()
	}()
}
