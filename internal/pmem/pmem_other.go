//go:build !amd64 || purego

package pmem

// Supported reports whether WriteBack can be used.
func Supported() bool { return false }

// WriteBack does nothing where Supported is false.
func WriteBack([]byte) {}

// Fence does nothing where Supported is false.
func Fence() {}
