//go:build !race

package target

const raceEnabled = false

// cutStride is how many octets further each cut of a connection is than the one before.
const cutStride = 1
