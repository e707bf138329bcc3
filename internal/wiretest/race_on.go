//go:build race

package wiretest

// RaceEnabled tells whether the race detector is on.
const RaceEnabled = true
