//go:build !race

package rdma9p

const raceEnabled = false
