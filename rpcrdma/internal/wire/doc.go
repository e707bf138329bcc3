// Package wire has the octets of RPC over RDMA version 1 (RFC 8166) and of its private data (RFC 8797): the
// transport header, and what of an RPC message the transport looks at. Everything is big-endian.
package wire
