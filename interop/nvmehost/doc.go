// Package nvmehost is our host of NVMe over RDMA in the lab: scripts that run against a target, such as that of Linux. Most of
// them use package host of the example. Those that a good host would refuse to do, such as the one that names a key that is
// not there, send capsules of their own.
package nvmehost
