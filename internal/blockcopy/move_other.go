//go:build !amd64 || purego || race

package blockcopy

// fast is false where the built-in copy is the best there is, and under the race
// detector, which has to see every access.
const fast = false

func move(dst, src []byte) { copy(dst, src) }
