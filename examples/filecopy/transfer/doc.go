// Package transfer copies files between two hosts by RDMA. The example filecopy and the commands serve, put, get and demo
// of iwarp use it.
//
// The server registers the file itself as a region, and the client moves its octets: with RDMA Writes for a put, and with
// RDMA Reads for a get. The server's program does not handle the octets; it only names the file, and checks the sum at the
// end. protocol.go describes the few control messages.
//
// There is no authentication: every host that can reach the server's address can read and replace every file below its
// directory.
package transfer
