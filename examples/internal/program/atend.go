package program

import "context"

// AtEnd calls end when ctx ends, unless the function that it returns has been called. That one, which is to be called once, tells whether
// end will not be called, and otherwise waits until it has returned: an RNIC must not be closed while a connection of it is.
func AtEnd(ctx context.Context, end func()) (stop func() bool) {
	ended := make(chan struct{})
	stopped := context.AfterFunc(ctx, func() {
		defer close(ended)
		end()
	})
	return func() bool {
		if stopped() {
			return true
		}
		<-ended
		return false
	}
}
