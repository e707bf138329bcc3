//go:build !amd64 || purego

package pmem

// Supported reports whether WriteBack can be used.
func Supported() bool { return false }

// WriteBack does nothing if Supported reports false.
func WriteBack([]byte) {}

// Fence does nothing if Supported reports false.
func Fence() {}
