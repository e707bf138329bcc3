//go:build race

package target

const raceEnabled = true

// cutStride is how many octets further each cut of a connection is than the one before: the race detector makes each
// conversation ten times as long.
const cutStride = 29
