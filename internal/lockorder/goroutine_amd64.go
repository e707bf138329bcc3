//go:build lockorder && amd64

package lockorder

// goroutine tells goroutines apart: by the address of the runtime's descriptor, which another one
// has only when this one has ended.
func goroutine() uint64
