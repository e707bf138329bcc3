// Package nfsclient is the lab's client of NFSv3 over RDMA: calls of package rpcrdma to a server such as that of Linux, and a
// script that uses each form of call. It implements only the part of NFS that the script needs.
package nfsclient
