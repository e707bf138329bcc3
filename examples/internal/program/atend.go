package program

import "context"

// AtEnd calls end when ctx ends, unless stop was called before. stop must be called once. It reports true if end will not be called;
// otherwise it waits until end has returned, because an RNIC must not be closed while one of its connections is being closed.
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
