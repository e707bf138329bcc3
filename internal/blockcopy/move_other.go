//go:build !amd64 || purego || race

package blockcopy

// fast is false on platforms where the built-in copy is best, and under the race
// detector, which has to see every access.
const fast = false

func move(dst, src []byte) { copy(dst, src) }
