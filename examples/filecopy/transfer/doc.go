// Package transfer copies files between two hosts by RDMA. The example filecopy and the commands serve, put, get and demo
// of iwarp use it.
//
// The server registers the file itself as a region, and the client moves its octets: with RDMA Writes into a file that is
// put, with RDMA Reads out of a file that is got. The server's program does not see them pass; it only names the file, and
// checks the sum in the end. The few words in between are in protocol.go.
//
// There is no authentication: every host that can reach the server's address can read and replace every file below its
// directory.
package transfer
