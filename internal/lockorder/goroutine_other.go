//go:build lockorder && !amd64

package lockorder

import (
	"runtime"
	"slices"
	"strconv"
	"sync"
)

// heads holds buffers into which runtime.Stack writes the beginning of a stack.
var heads = sync.Pool{New: func() any { return new([64]byte) }}

// goroutine returns the number of this goroutine, from the first line of its stack: "goroutine 7
// [running]:".
func goroutine() uint64 {
	head := heads.Get().(*[64]byte)
	defer heads.Put(head)
	digits := head[len("goroutine "):runtime.Stack(head[:], false)]
	digits = digits[:slices.Index(digits, ' ')]
	g, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil {
		panic(err)
	}
	return g
}
