// Package nfsclient is our client of NFSv3 over RDMA in the lab: calls of package rpcrdma to a server such as that of Linux, and a
// script that uses each of their shapes. It is as much of NFS as that takes.
package nfsclient
