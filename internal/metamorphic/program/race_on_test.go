//go:build race

package program

// programs is how many random programs a test runs: fewer with the race detector, which takes five times as long.
const programs = 30

// strides is how many octets further each damage is than the one before.
const strides = 11
