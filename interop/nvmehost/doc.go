// Package nvmehost is the library's NVMe over RDMA host in the lab: scripts that run against a target, such as that of Linux. Most
// scripts use package host of the example. Scripts that do what a correct host would refuse, such as naming a key that does not
// exist, send their own capsules.
package nvmehost
