// Package closed reports whether channels are closed.
package closed

// Is reports whether c is closed. Nothing may ever be sent on c.
func Is(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
