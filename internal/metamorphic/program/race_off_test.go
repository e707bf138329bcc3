//go:build !race

package program

// programs is how many random programs a test runs.
const programs = 100

// strides is how many octets further each damage is than the one before.
const strides = 1
