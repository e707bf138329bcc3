// Package closed tells whether channels are closed.
package closed

// Is reports whether c is closed, on which nothing is ever sent.
func Is(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
