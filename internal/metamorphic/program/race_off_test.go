//go:build !race

package program

// programs is how many random programs a test runs.
const programs = 100
