// Package wire encodes and decodes RPC over RDMA version 1 (RFC 8166) and its private data (RFC 8797): the
// transport header, and the parts of an RPC message that the transport reads. Everything is big-endian.
package wire
