//go:build lockorder && amd64

package lockorder

// goroutine identifies the calling goroutine by the address of the runtime's descriptor, which
// another goroutine can have only after this one has ended.
func goroutine() uint64
